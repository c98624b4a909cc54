//! The webhook: takes note of what is to be done, and answers at once.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{MethodRouter, post};
use graphile_worker::WorkerUtils;
use idempotent_webhook::provider::SecretError;
use idempotent_webhook::{DedupeTx, Delivery, IdempotentWebhook, Secret, presets};
use serde_json::Value;
use sqlx::PgPool;

use crate::shipping::Ship;
use crate::stripe;

pub const PATH: &str = "/webhooks/stripe";

/// The layer, with the endpoint and the provider of [`PATH`].
pub fn layer(pool: PgPool) -> Result<IdempotentWebhook, SecretError> {
    let secret = Secret::new(stripe::SECRET)?;
    Ok(IdempotentWebhook::new(
        pool,
        "payments",
        presets::stripe(secret),
    ))
}

/// The handler, which belongs behind [`layer`].
pub fn route(jobs: WorkerUtils) -> MethodRouter {
    post(payment).with_state(jobs)
}

async fn payment(
    State(jobs): State<WorkerUtils>,
    mut tx: DedupeTx,
    delivery: Delivery,
    Json(event): Json<Value>,
) -> Result<StatusCode, StatusCode> {
    let order = event["data"]["object"]["metadata"]["order"].as_str();
    let (Some("payment_intent.succeeded"), Some(order)) = (delivery.event_type(), order) else {
        return Ok(StatusCode::OK);
    };
    let ship = Ship {
        order: order.to_owned(),
        // From the delivery, not from the job: it must be the same however often either
        // is attempted.
        idempotency_key: delivery.idempotency_key("ship"),
    };
    // By way of `tx` the job and the claim commit together, or neither does. The worker
    // hears of the job when they do.
    jobs.with_executor(&mut *tx)
        .add_job(ship, Ship::spec())
        .await
        .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(StatusCode::OK)
}
