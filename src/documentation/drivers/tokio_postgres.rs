//! Stripe payments, each inserted once with tokio-postgres.

use std::env;
use std::error::Error;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use deadpool_postgres::{Config, Pool};
use idempotent_webhook::{Delivery, HandlerError, Secret, VerifiedWebhook, presets};
use serde::Deserialize;
use sqlx::PgPool;
use tokio::net::TcpListener;
use tokio_postgres::NoTls;
use tokio_postgres::error::SqlState;

#[derive(Deserialize)]
struct Event {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    object: PaymentIntent,
}

#[derive(Deserialize)]
struct PaymentIntent {
    amount: i64,
}

const CLAIM: &str = "select idempotent_webhook.claim($1, $2, $3, $4)";
const INSERT: &str = "insert into payments (event_id, amount) values ($1, $2)";

async fn paid(
    State(pool): State<Pool>,
    delivery: Delivery,
    Json(event): Json<Event>,
) -> Result<StatusCode, HandlerError> {
    let mut client = pool.get().await?;
    let tx = client.transaction().await?;
    let id = delivery.id().as_str();
    let (endpoint, tenant) = (delivery.endpoint(), delivery.key_tenant());
    let claimed = tx
        .query_one(CLAIM, &[&endpoint, &tenant, &id, &delivery.event_type()])
        .await
        .map_err(not_claimed)?;
    if !claimed.try_get(0)? {
        return Ok(StatusCode::OK);
    }
    tx.execute(INSERT, &[&id, &event.data.object.amount])
        .await?;
    // If an earlier error was ignored, Postgres rolls back, but `commit` still returns `Ok`. This statement then fails.
    tx.batch_execute("select 1").await?;
    tx.commit().await?;
    Ok(StatusCode::OK)
}

/// Another process holds the claim for longer than `lock_timeout`. Stripe will send the event again.
fn not_claimed(error: tokio_postgres::Error) -> HandlerError {
    match error.code() {
        Some(&SqlState::LOCK_NOT_AVAILABLE) => {
            HandlerError::from(error).status(StatusCode::SERVICE_UNAVAILABLE)
        }
        _ => error.into(),
    }
}

/// The wait for a claim ends before Stripe gives up, and Postgres ends the claim of a frozen process.
const LIMITS: &str = "-c lock_timeout=5s -c idle_in_transaction_session_timeout=30s";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::var("DATABASE_URL")?;
    idempotent_webhook::migrate(&PgPool::connect(&url).await?).await?;

    let mut config = Config::new();
    config.url = Some(url);
    config.options = Some(LIMITS.to_owned());
    let pool = config.create_pool(None, NoTls)?;
    let table =
        "create table if not exists payments (event_id text primary key, amount bigint not null)";
    pool.get().await?.batch_execute(table).await?;

    let secret = Secret::new(env::var("STRIPE_WEBHOOK_SECRET")?)?;
    let stripe =
        VerifiedWebhook::new("billing", presets::stripe(secret)).only(["payment_intent.succeeded"]);
    let app = Router::new()
        .route("/webhooks/stripe", post(paid).layer(stripe))
        .with_state(pool);

    let port = env::var("PORT").unwrap_or("3000".to_owned());
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, app).await?;
    Ok(())
}
