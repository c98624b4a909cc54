//! The dashboard of a busy application with failing parts.
//!
//!     cargo run --example dashboard --features dashboard
//!
//! No server has to be running: the example creates its own database, on the server of `DATABASE_URL` if that is set,
//! and otherwise on a PostgreSQL server that it starts. It serves until Ctrl-C. With `-- --exit`, it requests each page
//! itself, and exits. `PORT` sets the port.

#[path = "../playground/mod.rs"]
mod playground;
mod shop;
mod yesterday;

use std::process::ExitCode;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use idempotent_webhook::Recovery;
use idempotent_webhook::dashboard::{Access, Dashboard};
use playground::step;
use shop::Shop;
use sqlx::PgPool;
use tokio::net::TcpListener;

const PREFIX: &str = "/admin/webhooks";

#[tokio::main]
async fn main() -> ExitCode {
    playground::run(example).await
}

async fn example(pool: PgPool) -> playground::Result<()> {
    let recovery = Recovery::new(pool.clone());
    let shop = Shop::new(&pool, &recovery).await?;
    yesterday::happened(&pool).await?;
    let recovery = recovery.spawn(shop.router.clone());

    // In production, this comes from a session: `Access::none()` for users who are not operators.
    let dashboard = Dashboard::new(pool.clone())
        .authorize(|_| Access::operate().with_payloads().named("you"))
        .hosts(["127.0.0.1", "localhost"]);
    let app = shop
        .router
        .clone()
        .merge(Router::new().nest_service(PREFIX, dashboard.into_router()));

    let port = std::env::var("PORT")
        .ok()
        .and_then(|port| port.parse().ok());
    let listener = TcpListener::bind(("127.0.0.1", port.unwrap_or(3000))).await?;
    let address = format!("http://{}{PREFIX}", listener.local_addr()?);
    let server = tokio::spawn(axum::serve(listener, app).into_future());
    if std::env::args().any(|argument| argument == "--exit") {
        look_at_each_page(&shop, &address).await?;
    } else {
        println!("The dashboard: {address}");
        println!("Deliveries come in and some of them fail, until Ctrl-C.");
        shop.is_busy().await?;
    }
    recovery.stop().await;
    server.abort();
    Ok(())
}

async fn look_at_each_page(shop: &Shop, address: &str) -> playground::Result<()> {
    for _ in 0..20 {
        shop.receives_something().await?;
    }
    // The layers write their counters every 5 seconds.
    tokio::time::sleep(Duration::from_secs(6)).await;
    for (page, text) in [
        ("overview", "What is failing"),
        ("endpoint?endpoint=billing", "By version of the application"),
        ("deliveries", "the ledger is away"),
        ("deliveries?state=processed", "evt_"),
        ("rejected", "signature matches none of the secrets"),
        ("lookup?ids=unheard-of", "Never received"),
        ("actions", "What operators do"),
        ("api/overview", r#""endpoint": "billing""#),
    ] {
        let answer = reqwest::get(format!("{address}/{page}")).await?;
        let status = answer.status();
        let shows_it = answer.text().await?.contains(text);
        let came = format!("{status}, with “{text}”: {shows_it}");
        step(
            page,
            came,
            &format!("{}, with “{text}”: true", StatusCode::OK),
        )?;
    }
    Ok(())
}
