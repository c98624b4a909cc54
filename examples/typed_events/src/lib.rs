//! Handlers that take the events of async-stripe and of octocrab.
//!
//! The layer has verified the body, so both kinds of events are read without a signature: with `Webhook::insecure`, and
//! with `WebhookEvent::try_from_header_and_body`. **A handler that verifies again, for example with `construct_event`,
//! fails at each recovery attempt**: the signature is not kept, and it would be too old after a few minutes.
//!
//! Complete types follow one version of an API. An event of another version may not fit these types, and each of its
//! retries then fails. A small struct that has only the members that a handler needs is safer. See `Events` in the
//! guide.

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use idempotent_webhook::{DedupeTx, Delivery, Events, HandlerError, IdempotentWebhook, Provider};
use octocrab::models::webhook_events::{WebhookEvent, WebhookEventPayload};
use sqlx::PgPool;
use stripe_webhook::{EventObject, Webhook};

/// An application with an endpoint for each of the two providers.
pub fn router(pool: &PgPool, stripe: Provider, github: Provider) -> Router {
    let stripe = IdempotentWebhook::new(pool.clone(), "customers", stripe);
    let customers = Events::new()
        .on("customer.created", customer_created)
        .ignore_others();
    let github = IdempotentWebhook::new(pool.clone(), "deployments", github);
    let pushes = Events::new().on("push", pushed).ignore_others();
    Router::new()
        .route("/webhooks/stripe", post(customers.layer(stripe)))
        .route("/webhooks/github", post(pushes.layer(github)))
}

async fn customer_created(mut tx: DedupeTx, body: String) -> Result<StatusCode, HandlerError> {
    let event = Webhook::insecure(&body)?;
    let EventObject::CustomerCreated(customer) = event.data.object else {
        return Err(HandlerError::new("its type does not fit its object").dead());
    };
    sqlx::query("insert into customers (id, email) values ($1, $2)")
        .bind(customer.id.as_str())
        .bind(customer.email)
        .execute(&mut *tx)
        .await?;
    Ok(StatusCode::OK)
}

async fn pushed(
    mut tx: DedupeTx,
    delivery: Delivery,
    body: String,
) -> Result<StatusCode, HandlerError> {
    let event_type = delivery.event_type().unwrap_or_default();
    let event = WebhookEvent::try_from_header_and_body(event_type, &body)?;
    let WebhookEventPayload::Push(push) = event.specific else {
        return Err(HandlerError::new("its type does not fit its body").dead());
    };
    sqlx::query("insert into pushes (ref, after) values ($1, $2)")
        .bind(push.r#ref)
        .bind(push.after)
        .execute(&mut *tx)
        .await?;
    Ok(StatusCode::OK)
}
