//! Stripe payments, each inserted once on AWS Lambda, behind a function URL or an HTTP API.

use std::env;
use std::time::Duration;

use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use idempotent_webhook::{
    DedupeTx, Delivery, HandlerError, IdempotentWebhook, Keep, Recovery, Secret, presets,
};
use lambda_http::Error;
use serde::Deserialize;
use sqlx::postgres::PgPoolOptions;

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

async fn paid(
    mut tx: DedupeTx,
    delivery: Delivery,
    Json(event): Json<Event>,
) -> Result<StatusCode, HandlerError> {
    sqlx::query("insert into payments (event_id, amount) values ($1, $2)")
        .bind(delivery.id())
        .bind(event.data.object.amount)
        .execute(&mut *tx)
        .await?;
    Ok(StatusCode::OK)
}

const TABLE: &str =
    "create table if not exists payments (event_id text primary key, amount bigint not null)";

#[tokio::main]
async fn main() -> Result<(), Error> {
    lambda_http::tracing::init_default_subscriber();
    // An instance handles one request at a time. If it loses a connection while it is frozen, the pool notices.
    let pool = PgPoolOptions::new().max_connections(2);
    let pool = pool.connect(&env::var("DATABASE_URL")?).await?;
    // This runs at each start of an instance. A deploy step is better.
    idempotent_webhook::migrate(&pool).await?;
    sqlx::query(TABLE).execute(&pool).await?;

    let secret = Secret::new(env::var("STRIPE_WEBHOOK_SECRET")?)?;
    // A process that keeps running retries kept deliveries, through the same route, with `Recovery::spawn`.
    let kept = Recovery::elsewhere(pool.clone());
    let stripe = IdempotentWebhook::new(pool, "billing", presets::stripe(secret))
        .only(["payment_intent.succeeded"])
        .keep(Keep::failed(&kept))
        // The layer counts requests and writes the numbers in the background, where nothing runs on Lambda.
        .without_activity()
        // Shorter than the function's timeout, so that the layer can still roll back and answer.
        .handler_timeout(Duration::from_secs(8));
    let app: Router = Router::new().route("/webhooks/stripe", post(paid).layer(stripe));
    lambda_http::run(app).await
}
