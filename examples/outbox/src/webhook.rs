//! The webhook: it enqueues a job, and answers at once.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{MethodRouter, post};
use graphile_worker::WorkerUtils;
use idempotent_webhook::Secret;
use idempotent_webhook::provider::SecretError;
use idempotent_webhook::{DedupeTx, Delivery, HandlerError, IdempotentWebhook, Provider, presets};
use serde_json::Value;
use sqlx::PgPool;

use crate::shipping::Ship;

pub const PATH: &str = "/webhooks/stripe";

/// The provider. The application uses it to verify, and the test uses it to sign.
pub fn provider() -> Result<Provider, SecretError> {
    Ok(presets::stripe(Secret::new("whsec_demo")?))
}

/// The layer, with the endpoint and the provider of [`PATH`].
pub fn layer(pool: PgPool) -> Result<IdempotentWebhook, SecretError> {
    Ok(IdempotentWebhook::new(pool, "payments", provider()?))
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
) -> Result<StatusCode, HandlerError> {
    let order = event["data"]["object"]["metadata"]["order"].as_str();
    let (Some("payment_intent.succeeded"), Some(order)) = (delivery.event_type(), order) else {
        return Ok(StatusCode::OK);
    };
    let ship = Ship {
        order: order.to_owned(),
        // This key comes from the delivery and not from the job, because it must be the same for
        // every attempt at the delivery and every attempt at the job.
        idempotency_key: delivery.idempotency_key("ship"),
    };
    // Because this uses `tx`, the job and the claim are committed together, or not at all. The
    // worker is notified of the job at the commit.
    jobs.with_executor(&mut *tx)
        .add_job(ship, Ship::spec())
        .await?;
    Ok(StatusCode::OK)
}
