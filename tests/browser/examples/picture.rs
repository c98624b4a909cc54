//! Takes the screenshot for the README and the documentation: the dashboard with the data of the example `dashboard`.
//! It needs Debian's package `pngquant`.
//!
//!     cargo run -p browser --example picture

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
use std::process::{Command, ExitCode};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use browser::{Browser, Look, Server};
use idempotent_webhook::Recovery;
use idempotent_webhook::dashboard::{Access, Dashboard};
use shop::Shop;
use sqlx::PgPool;

/// The largest size of the picture, in bytes. The documentation page contains the picture as base64, which is a third
/// longer.
const LARGEST: usize = 60_000;

const COLOURS: &str = "48";

/// Deliveries of the served endpoints that are not dead yet.
const WAITING: &str = "
    select count(*)
    from idempotent_webhook.kept_deliveries
    where endpoint in ('billing', 'commands', 'deployments') and state = 'due'
";

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    // With a fixed seed, the deliveries are the same each time.
    fastrand::seed(7);
    playground::run(picture).await
}

async fn picture(pool: PgPool) -> playground::Result<()> {
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
    // The layers write their counts every 5 seconds.
    tokio::time::sleep(Duration::from_secs(6)).await;
    for _ in 0..12 {
        shop.receives_something().await?;
    }

    let dashboard =
        Dashboard::new(pool).authorize(|_| Access::operate().with_payloads().named("you"));
    let server = Server::start(dashboard.into_router()).await;
    let browser = Browser::start().await;
    let look = Look {
        width: 1280,
        height: 815,
        ..Look::default()
    };
    let mut page = browser.page(look).await;
    page.goto(&server.url("/overview")).await;
    // Hides the scroll bar.
    page.eval::<()>("document.documentElement.style.overflow = 'hidden', undefined")
        .await;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pictures/dashboard.png");
    page.screenshot_of_window(&file).await;
    recovery.stop().await;

    // This reduces the size to a third, with no visible difference.
    let reduced = Command::new("pngquant")
        .args(["--nofs", "--strip", "--force", "--ext", ".png", COLOURS])
        .arg(&file)
        .status()?;
    if !reduced.success() {
        return Err("pngquant has failed".into());
    }
    let picture = std::fs::read(&file)?;
    println!("{} bytes", picture.len());
    if picture.len() > LARGEST {
        return Err(format!("larger than {LARGEST} bytes").into());
    }
    // The documentation embeds it as text.
    std::fs::write(file.with_extension("png.base64"), STANDARD.encode(picture))?;
    Ok(())
}
