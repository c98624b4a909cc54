//! The provider: it sends events that are signed as Stripe signs them.

use std::net::SocketAddr;

use axum::body::Bytes;
use axum::http::Request;
use idempotent_webhook::OUTCOME_HEADER;
use idempotent_webhook::testing::TestDelivery;
use serde_json::json;

use crate::webhook;

/// Sends an event which says that an order is paid. Returns the status and the outcome, such as
/// `200 processed`.
pub async fn deliver(
    to: SocketAddr,
    event: &str,
    order: &str,
) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    let body = json!({
        "object": "event",
        "data": { "object": { "object": "payment_intent", "metadata": { "order": order } } },
    });
    let delivery: Request<Bytes> = TestDelivery::new(&webhook::provider()?)
        .id(event)
        .event_type("payment_intent.succeeded")
        .body(body.to_string())
        .request();
    let (head, body) = delivery.into_parts();
    let response = reqwest::Client::new()
        .post(format!("http://{to}{}", webhook::PATH))
        .headers(head.headers)
        .body(body)
        .send()
        .await?;
    let outcome = match response.headers().get(OUTCOME_HEADER) {
        Some(outcome) => outcome.to_str()?,
        None => "without an outcome",
    };
    Ok(format!("{} {outcome}", response.status().as_u16()))
}
