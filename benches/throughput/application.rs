//! The contenders that need only the dependencies of this crate.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use hmac::{Hmac, KeyInit, Mac};
use idempotent_webhook::{DedupeTx, Delivery, Events, IdempotentWebhook, Secret, presets};
use sha2::Sha256;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions, PgConnection, PgPool, Postgres, Transaction};
use std::time::Duration;
use tokio::io::AsyncReadExt;

pub const VARIANTS: [&str; 4] = [
    "layer",
    "hand-written, bounded",
    "hand-written, careful",
    "hand-written, naive",
];

/// Events without a handler: the layer ignores them, and the handwritten code claims them and does
/// nothing.
pub const IGNORED: &str = "layer, ignored";
pub const CLAIMED: &str = "hand-written, claimed";

pub const SECRET: &str = "benchmark";
pub const VARIANT: &str = "BENCHMARK_VARIANT";
pub const DATABASE: &str = "BENCHMARK_DATABASE";

pub fn is_wanted() -> bool {
    std::env::var_os(VARIANT).is_some()
}

pub async fn run() {
    let variant = std::env::var(VARIANT).unwrap();
    let options: PgConnectOptions = std::env::var(DATABASE).unwrap().parse().unwrap();
    let pool = PgPoolOptions::new()
        .max_connections(10)
        .connect_lazy_with(options.disable_statement_logging());
    let layer = || {
        let github = presets::github(Secret::new(SECRET).unwrap());
        IdempotentWebhook::new(pool.clone(), variant.clone(), github)
    };
    let route = match variant.as_str() {
        "layer" => post(handle).layer(layer()),
        IGNORED => {
            let events = Events::new().on("release", handle).ignore_others();
            post(events.layer(layer()))
        }
        CLAIMED => post(claimed).with_state(pool.clone()),
        "hand-written, bounded" => post(bounded).with_state(pool.clone()),
        "hand-written, careful" => post(careful).with_state(pool.clone()),
        "hand-written, naive" => post(naive).with_state(pool.clone()),
        other => panic!("no variant {other}"),
    };
    serve(Router::new().route("/", route)).await;
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

type Answer = Result<StatusCode, StatusCode>;

fn failed(_: sqlx::Error) -> StatusCode {
    StatusCode::INTERNAL_SERVER_ERROR
}

/// The work of all contenders: one row.
async fn work(connection: &mut PgConnection, id: &str) -> sqlx::Result<()> {
    sqlx::query("insert into effects (delivery_id) values ($1)")
        .bind(id)
        .execute(connection)
        .await?;
    Ok(())
}

pub async fn handle(mut tx: DedupeTx, delivery: Delivery, _body: Bytes) -> Answer {
    work(&mut tx, delivery.id().as_str())
        .await
        .map_err(failed)?;
    Ok(StatusCode::OK)
}

/// Verifies, and returns the delivery id.
fn verify(headers: &HeaderMap, body: &[u8]) -> Result<String, StatusCode> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let signature = text("x-hub-signature-256")
        .and_then(|value| value.strip_prefix("sha256="))
        .and_then(|hex| hex::decode(hex).ok())
        .ok_or(StatusCode::UNAUTHORIZED)?;
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(body);
    mac.verify_slice(&signature)
        .map_err(|_| StatusCode::UNAUTHORIZED)?;
    let id = text("x-github-delivery").ok_or(StatusCode::BAD_REQUEST)?;
    Ok(id.to_owned())
}

async fn claim(connection: &mut PgConnection, id: &str) -> sqlx::Result<bool> {
    let claimed = sqlx::query(
        "insert into by_hand (delivery_id, event_type) values ($1, 'push')
         on conflict do nothing",
    )
    .bind(id)
    .execute(connection)
    .await?;
    Ok(claimed.rows_affected() == 1)
}

/// Like `careful`, but with limits: neither a duplicate in flight nor the work can take forever.
async fn bounded(State(pool): State<PgPool>, headers: HeaderMap, body: Bytes) -> Answer {
    let id = verify(&headers, &body)?;
    in_a_task(async move {
        let mut tx = pool.begin().await?;
        sqlx::raw_sql("set local lock_timeout = '6s'")
            .execute(&mut *tx)
            .await?;
        if !claim(&mut tx, &id).await? {
            return Ok(StatusCode::OK);
        }
        sqlx::raw_sql("set local lock_timeout = default")
            .execute(&mut *tx)
            .await?;
        let work = tokio::time::timeout(Duration::from_secs(30), work(&mut tx, &id));
        let Ok(worked) = work.await else {
            return Ok(StatusCode::SERVICE_UNAVAILABLE);
        };
        worked?;
        commit(tx).await
    })
    .await
}

/// Gives the guarantees of the layer except its limits. It works in a task, and checks for an
/// aborted transaction.
pub async fn careful(State(pool): State<PgPool>, headers: HeaderMap, body: Bytes) -> Answer {
    let id = verify(&headers, &body)?;
    in_a_task(async move {
        let mut tx = pool.begin().await?;
        if !claim(&mut tx, &id).await? {
            return Ok(StatusCode::OK);
        }
        work(&mut tx, &id).await?;
        commit(tx).await
    })
    .await
}

/// Runs the work to its end even if the sender hangs up.
async fn in_a_task(
    work: impl Future<Output = sqlx::Result<StatusCode>> + Send + 'static,
) -> Answer {
    tokio::spawn(work)
        .await
        .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?
        .map_err(failed)
}

/// Commits, unless the transaction is aborted.
async fn commit(mut tx: Transaction<'static, Postgres>) -> sqlx::Result<StatusCode> {
    sqlx::query("select 1").execute(&mut *tx).await?;
    tx.commit().await?;
    Ok(StatusCode::OK)
}

/// Like `naive`, for an event that needs no work.
async fn claimed(State(pool): State<PgPool>, headers: HeaderMap, body: Bytes) -> Answer {
    let id = verify(&headers, &body)?;
    let mut tx = pool.begin().await.map_err(failed)?;
    claim(&mut tx, &id).await.map_err(failed)?;
    tx.commit().await.map_err(failed)?;
    Ok(StatusCode::OK)
}

async fn naive(State(pool): State<PgPool>, headers: HeaderMap, body: Bytes) -> Answer {
    let id = verify(&headers, &body)?;
    let mut tx = pool.begin().await.map_err(failed)?;
    if !claim(&mut tx, &id).await.map_err(failed)? {
        return Ok(StatusCode::OK);
    }
    work(&mut tx, &id).await.map_err(failed)?;
    tx.commit().await.map_err(failed)?;
    Ok(StatusCode::OK)
}
