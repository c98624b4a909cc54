//! The applications under load.

use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use idempotent_webhook::{DedupeTx, Delivery, IdempotentWebhook, Recovery, Secret, presets};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions, PgPool};
use tokio::io::AsyncReadExt;

pub const SECRET: &str = "benchmark";
pub const VARIANT: &str = "BENCHMARK_VARIANT";
pub const DATABASE: &str = "BENCHMARK_DATABASE";

/// Accepts first, at an endpoint that is paused.
pub const ACCEPT_FIRST: &str = "accept_first";
/// What teams write to answer at once: insert the raw body, answer 200.
pub const ACCEPT_BY_HAND: &str = "by hand, inbox";
/// The layer without any recovery.
pub const LAYER: &str = "layer";
/// Runs what is kept of `BACKLOG`, as many at once as a sender has connections.
pub const DRAIN: &str = "recovery";
/// The same with the default settings, and serves a live stream.
pub const LIVE: &str = "live, recovery beside";

/// The endpoint of what is kept.
pub const BACKLOG: &str = "backlog";

/// As many at once as the sender has connections.
pub const CONCURRENCY: usize = 8;

pub fn is_wanted() -> bool {
    std::env::var_os(VARIANT).is_some()
}

pub async fn run() {
    let variant = std::env::var(VARIANT).unwrap();
    let options: PgConnectOptions = std::env::var(DATABASE).unwrap().parse().unwrap();
    let pool = PgPoolOptions::new()
        // Recovery uses half of them at most.
        .max_connections(if variant == DRAIN { 20 } else { 10 })
        .connect_lazy_with(options.disable_statement_logging());
    let layer = |endpoint: &str| github(&pool, endpoint);
    let router = match variant.as_str() {
        ACCEPT_FIRST => {
            // Nothing is handled, so all that is sent is kept.
            let accepting = layer(&variant).accept_first().keep_quota(u32::MAX, 1 << 40);
            Router::new().route("/", post(handle).layer(accepting))
        }
        ACCEPT_BY_HAND => Router::new().route("/", post(inbox).with_state(pool.clone())),
        LAYER => Router::new().route("/", post(handle).layer(layer(&variant))),
        DRAIN | LIVE => Router::new()
            .route("/", post(handle).layer(layer(&variant)))
            .route("/backlog", post(handle).layer(layer(BACKLOG).keep_failed())),
        other => panic!("no variant {other}"),
    };
    let recovery = Recovery::new(pool.clone(), router.clone());
    // It has to notice soon that the endpoint is resumed.
    let recovery = recovery.poll_interval(Duration::from_millis(100));
    let recovery = match variant.as_str() {
        DRAIN => Some(recovery.concurrency(CONCURRENCY).spawn()),
        LIVE => Some(recovery.spawn()),
        _ => None,
    };
    serve(router).await;
    if let Some(recovery) = recovery {
        recovery.stop().await;
    }
}

pub fn github(pool: &PgPool, endpoint: &str) -> IdempotentWebhook {
    let github = presets::github(Secret::new(SECRET).unwrap());
    IdempotentWebhook::new(pool.clone(), endpoint.to_owned(), github)
}

async fn serve(router: Router) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap());
    let mut parent = tokio::io::stdin();
    tokio::select! {
        served = axum::serve(listener, router) => served.unwrap(),
        _ = parent.read_u8() => {}
    }
}

fn failed(_: sqlx::Error) -> StatusCode {
    StatusCode::INTERNAL_SERVER_ERROR
}

async fn handle(mut tx: DedupeTx, delivery: Delivery, _body: Bytes) -> Result<(), StatusCode> {
    sqlx::query("insert into effects (delivery_id) values ($1)")
        .bind(delivery.id())
        .execute(&mut *tx)
        .await
        .map_err(failed)?;
    Ok(())
}

async fn inbox(
    State(pool): State<PgPool>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<(), StatusCode> {
    let id = headers.get("x-github-delivery").unwrap().to_str().unwrap();
    sqlx::query("insert into inbox (delivery_id, body) values ($1, $2) on conflict do nothing")
        .bind(id)
        .bind(&*body)
        .execute(&pool)
        .await
        .map_err(failed)?;
    Ok(())
}
