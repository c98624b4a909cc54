//! The applications under load.

use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use idempotent_webhook::{DedupeTx, Delivery, IdempotentWebhook, Keep, Recovery, Secret, presets};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions, PgPool};
use tokio::io::AsyncReadExt;

pub const SECRET: &str = "benchmark";
pub const VARIANT: &str = "BENCHMARK_VARIANT";
pub const DATABASE: &str = "BENCHMARK_DATABASE";

/// The layer accepts deliveries before their handler runs. The endpoint is paused, so no handler
/// runs.
pub const ACCEPTED: &str = "accepted";
/// The handler that teams write in order to answer at once: insert the raw body, and answer 200.
pub const ACCEPT_BY_HAND: &str = "hand-written, inbox";
/// The layer without recovery.
pub const LAYER: &str = "layer";
/// The layer, which keeps all deliveries.
pub const KEEP_ALL: &str = "keep all";
/// The layer, which keeps failed deliveries. No delivery fails here.
pub const KEEP_FAILED: &str = "keep failed";
/// Runs kept deliveries. A number of slots follows, as in `drain 4`: how many deliveries run at
/// once.
pub const DRAIN: &str = "drain ";
/// Runs kept deliveries with the default settings, and serves a live stream.
pub const LIVE: &str = "live";
/// Keeps deliveries at two endpoints. Which deliveries are kept and the quota follow, as in
/// `weekend failed 300000`.
pub const WEEKEND: &str = "weekend ";

/// The paths of the two endpoints.
pub const HEALTHY: &str = "/healthy";
pub const BROKEN: &str = "/broken";

pub fn is_wanted() -> bool {
    std::env::var_os(VARIANT).is_some()
}

pub async fn run() {
    let variant = std::env::var(VARIANT).unwrap();
    let options: PgConnectOptions = std::env::var(DATABASE).unwrap().parse().unwrap();
    let slots = variant.strip_prefix(DRAIN);
    let pool = PgPoolOptions::new()
        // Recovery uses at most half of the connections.
        .max_connections(if slots.is_some() { 20 } else { 10 })
        .connect_lazy_with(options.disable_statement_logging());
    // The process must notice soon that an endpoint is resumed.
    let mut recovery = match variant.as_str() {
        ACCEPTED => Recovery::elsewhere(pool.clone()),
        _ => Recovery::new(pool.clone()).poll_interval(Duration::from_millis(100)),
    };
    if let Some(slots) = slots {
        recovery = recovery.concurrency(slots.parse().unwrap());
    }
    let layer = || github(&pool, &variant);
    let at_root = |keep| Router::new().route("/", post(handle).layer(layer().keep(keep)));
    let failed = || Keep::failed(&recovery);
    let all = || Keep::all(&recovery);
    let router = match variant.as_str() {
        // No handler runs, so all deliveries stay kept, and the quota must be large enough for
        // them.
        ACCEPTED => at_root(Keep::accepted(&recovery).quota(u32::MAX, 1 << 40)),
        ACCEPT_BY_HAND => Router::new().route("/", post(inbox).with_state(pool.clone())),
        LAYER => Router::new().route("/", post(handle).layer(layer())),
        KEEP_ALL => at_root(all()),
        KEEP_FAILED => at_root(failed()),
        LIVE => {
            let backlog = github(&pool, &backlog_of(LIVE)).keep(failed());
            Router::new()
                .route("/", post(handle).layer(layer()))
                .route("/backlog", post(handle).layer(backlog))
        }
        _ if variant.starts_with(WEEKEND) => {
            let keep = || keep_of(&variant, &recovery);
            let healthy = layer().keep(keep());
            let broken = github(&pool, &broken_endpoint_of(&variant)).keep(keep());
            Router::new()
                .route(HEALTHY, post(handle).layer(healthy))
                .route(BROKEN, post(handle_mended).layer(broken))
        }
        _ if slots.is_some() => {
            let backlog = github(&pool, &backlog_of(&variant)).keep(failed());
            Router::new().route("/backlog", post(handle).layer(backlog))
        }
        other => panic!("no variant {other}"),
    };
    if variant == ACCEPTED {
        return serve(router).await;
    }
    let recovery = recovery.spawn(router.clone());
    serve(router).await;
    recovery.stop().await;
}

/// Which deliveries are kept, and the quota, as in `weekend failed 300000`.
fn keep_of(variant: &str, recovery: &Recovery) -> Keep {
    let (way, quota) = variant
        .strip_prefix(WEEKEND)
        .and_then(|rest| rest.split_once(' '))
        .unwrap();
    let keep = match way {
        "failed" => Keep::failed(recovery),
        "all" => Keep::all(recovery),
        "accepted" => Keep::accepted(recovery),
        other => panic!("no way {other}"),
    };
    keep.quota(quota.parse().unwrap(), 1 << 40)
}

/// The endpoint whose handler is broken for a while.
pub fn broken_endpoint_of(variant: &str) -> String {
    format!("broken of {variant}")
}

/// The endpoint that a variant drains.
pub fn backlog_of(variant: &str) -> String {
    format!("backlog of {variant}")
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

/// The handler fails while its table has another name.
async fn handle_mended(
    mut tx: DedupeTx,
    delivery: Delivery,
    _body: Bytes,
) -> Result<(), StatusCode> {
    sqlx::query("insert into mended (delivery_id) values ($1)")
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
