//! The provider: sends events, signed as Stripe signs them.

use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use hmac::{Hmac, KeyInit, Mac};
use serde_json::json;
use sha2::Sha256;

use crate::webhook;

pub const SECRET: &str = "whsec_demo";

/// Sends an event that says that an order is paid, and returns the status and the outcome,
/// such as `200 processed`.
pub async fn deliver(
    to: SocketAddr,
    event: &str,
    order: &str,
) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    let body = json!({
        "id": event,
        "object": "event",
        "type": "payment_intent.succeeded",
        "data": { "object": { "object": "payment_intent", "metadata": { "order": order } } },
    })
    .to_string();
    let time = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes())?;
    mac.update(format!("{time}.{body}").as_bytes());
    let signature = hex::encode(mac.finalize().into_bytes());

    let response = reqwest::Client::new()
        .post(format!("http://{to}{}", webhook::PATH))
        .header("Stripe-Signature", format!("t={time},v1={signature}"))
        .header("Content-Type", "application/json")
        .body(body)
        .send()
        .await?;
    let outcome = match response.headers().get("x-webhook-outcome") {
        Some(outcome) => outcome.to_str()?,
        None => "without an outcome",
    };
    Ok(format!("{} {outcome}", response.status().as_u16()))
}
