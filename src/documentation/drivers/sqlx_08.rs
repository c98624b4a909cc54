//! Stripe payments, each inserted once with sqlx 0.8, next to the layer's sqlx 0.9.

use std::env;
use std::error::Error;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use idempotent_webhook::{Delivery, HandlerError, IdempotentWebhook, LateClaim, Secret, presets};
use serde::Deserialize;
use sqlx::PgPool;
use sqlx::postgres::PgConnectOptions;
use tokio::net::TcpListener;

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

const CLAIM: &str = "select idempotent_webhook.claim($1, $2, $3, $4, $5)";
const INSERT: &str = "insert into payments (event_id, amount) values ($1, $2)";

async fn paid(
    State(pool): State<PgPool>,
    claim: LateClaim,
    delivery: Delivery,
    Json(event): Json<Event>,
) -> Result<StatusCode, HandlerError> {
    let mut tx = pool.begin().await?;
    let is_claimed: bool = sqlx::query_scalar(CLAIM)
        .bind(delivery.endpoint())
        .bind(delivery.key_tenant())
        .bind(delivery.id().as_str())
        .bind(delivery.event_type())
        .bind(claim.take_number())
        .fetch_one(&mut *tx)
        .await
        .map_err(not_claimed)?;
    if !is_claimed {
        return Ok(StatusCode::OK);
    }
    sqlx::query(INSERT)
        .bind(delivery.id().as_str())
        .bind(event.data.object.amount)
        .execute(&mut *tx)
        .await?;
    tx.commit().await?;
    // The layer checks that the claim is there, and answers 500 if it is not.
    claim.committed();
    Ok(StatusCode::OK)
}

/// Another process holds the claim for longer than `lock_timeout`. Stripe will send the event again.
fn not_claimed(error: sqlx::Error) -> HandlerError {
    let code = error.as_database_error().and_then(|error| error.code());
    match code.as_deref() {
        Some("55P03") => HandlerError::from(error).status(StatusCode::SERVICE_UNAVAILABLE),
        _ => error.into(),
    }
}

/// The wait for a claim ends before Stripe gives up, and Postgres ends the claim of a frozen process.
const LIMITS: [(&str, &str); 2] = [
    ("lock_timeout", "5s"),
    ("idle_in_transaction_session_timeout", "30s"),
];

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::var("DATABASE_URL")?;
    let layers = sqlx_09::PgPool::connect(&url).await?;
    idempotent_webhook::migrate(&layers).await?;

    let options: PgConnectOptions = url.parse()?;
    let pool = PgPool::connect_with(options.options(LIMITS)).await?;
    let table =
        "create table if not exists payments (event_id text primary key, amount bigint not null)";
    sqlx::query(table).execute(&pool).await?;

    let secret = Secret::new(env::var("STRIPE_WEBHOOK_SECRET")?)?;
    let stripe = IdempotentWebhook::new(layers, "billing", presets::stripe(secret))
        .only(["payment_intent.succeeded"])
        .late_claim();
    let app = Router::new()
        .route("/webhooks/stripe", post(paid).layer(stripe))
        .with_state(pool);

    let port = env::var("PORT").unwrap_or("3000".to_owned());
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, app).await?;
    Ok(())
}
