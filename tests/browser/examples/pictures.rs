//! Takes the pictures of the README, of the dashboard with the data of the example `dashboard`.
//!
//!     cargo run --manifest-path tests/browser/Cargo.toml --target-dir target --example pictures

#[expect(dead_code, reason = "other examples print their steps")]
#[path = "../../../examples/playground/mod.rs"]
mod playground;
#[expect(
    dead_code,
    reason = "the example is busy for as long as it is looked at"
)]
#[path = "../../../examples/dashboard/shop.rs"]
mod shop;
#[path = "../../../examples/dashboard/yesterday.rs"]
mod yesterday;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use browser::{Browser, Look, Server};
use idempotent_webhook::Recovery;
use idempotent_webhook::dashboard::{Access, Dashboard};
use shop::Shop;
use sqlx::PgPool;

/// Of a picture, in bytes.
const LARGEST: u64 = 150_000;

/// A delivery whose attempts are used up.
const FAILED: &str = "
    select endpoint || '&id=' || delivery_id
    from idempotent_webhook.kept_deliveries
    where endpoint = 'billing' and state = 'dead'
    order by delivery_id
    limit 1
";

/// Those that are not dead yet, of the endpoints that are served.
const WAITING: &str = "
    select count(*)
    from idempotent_webhook.kept_deliveries
    where endpoint in ('billing', 'commands', 'deployments') and state = 'due'
";

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    // The same deliveries each time.
    fastrand::seed(7);
    playground::run(pictures).await
}

async fn pictures(pool: PgPool) -> playground::Result<()> {
    let recovery = Recovery::new(pool.clone());
    let shop = Shop::new(&pool, &recovery).await?;
    yesterday::happened(&pool).await?;
    for _ in 0..120 {
        shop.receives_something().await?;
    }
    let recovery = recovery.spawn(shop.router.clone());
    while sqlx::query_scalar::<_, i64>(WAITING)
        .fetch_one(&pool)
        .await?
        > 0
    {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // What the layers have counted is written every 5 seconds.
    tokio::time::sleep(Duration::from_secs(6)).await;
    for _ in 0..12 {
        shop.receives_something().await?;
    }
    let failed: String = sqlx::query_scalar(FAILED).fetch_one(&pool).await?;

    let dashboard =
        Dashboard::new(pool).authorize(|_| Access::operate().with_payloads().named("you"));
    let server = Server::start(dashboard.into_router()).await;
    let browser = Browser::start().await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pictures");
    std::fs::create_dir_all(&folder)?;
    let delivery = format!("delivery?endpoint={failed}");
    for (name, dark, width, height, path) in [
        ("dashboard-light", false, 1280, 815, "overview"),
        (
            "dashboard-endpoint-light",
            false,
            1280,
            775,
            "endpoint?endpoint=billing",
        ),
        ("dashboard-delivery-dark", true, 1280, 1215, &delivery),
        ("dashboard-phone", true, 360, 760, "overview"),
    ] {
        let look = Look {
            dark,
            width,
            height,
            ..Look::default()
        };
        let mut page = browser.page(look).await;
        page.goto(&server.url(&format!("/{path}"))).await;
        // Without a scroll bar.
        page.eval::<()>("document.documentElement.style.overflow = 'hidden', undefined")
            .await;
        let file = folder.join(name).with_extension("png");
        page.screenshot_of_window(&file).await;
        let size = std::fs::metadata(&file)?.len();
        println!("{name}: {size} bytes");
        if size > LARGEST {
            return Err(format!("{name} is larger than {LARGEST} bytes").into());
        }
    }
    recovery.stop().await;
    Ok(())
}
