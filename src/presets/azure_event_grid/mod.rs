use std::time::Duration;

use http::StatusCode;
use serde_json::{Value, json};

use self::scheme::EventGrid;
use super::cloudevents::{consent, event};
use crate::provider::{DAY, Handshake, HandshakeRequest, Provider, SecretSource, Source};

mod scheme;

/// [Azure Event Grid](https://learn.microsoft.com/azure/event-grid/receive-events), in its own schema and in the
/// CloudEvents schema.
///
/// **Nothing is signed: anyone who learns the secret can send any event.**
///
/// - Signature: none. The secret is in the query parameter `code`, if you wrote it into the endpoint's URL, or
///   else in the header `Authorization`, if you set that as a delivery property. For Microsoft Entra tokens, build
///   a provider with [`Jwt`](crate::provider::signature::Jwt).
/// - Delivery id: `$[0].topic` and `$[0].id` together, or `$.source` and `$.id` of a CloudEvent; **not** covered,
///   because nothing is signed. If together they are longer than 255 bytes, the id is the SHA-256 of both. A batch, if
///   you switched batching on, is identified by the SHA-256 of the body, so the handler runs again for an event that is
///   sent again in another batch. An event likely has the same id in two subscriptions, so give each route its own
///   endpoint name. **An event of a custom input schema without `topic` or `id` is rejected on every attempt**: set
///   another [`delivery_id`](Provider::delivery_id) for it. Event type: `$[0].eventType`, or `$.type`.
#[doc = include_str!("../facts/azure-event-grid.md")]
pub fn azure_event_grid(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("azure-event-grid")
        .signature(EventGrid, secrets)
        .delivery_id(Source::signed_value(event::ID))
        .event_type(Source::signed_value(event::TYPE))
        .unsigned_handshake(|request| {
            // The request carries the secret, but neither a body nor the headers of a delivery.
            request.signing_secret()?;
            consent(request)
        })
        .signed_handshake(validation)
        .success_status(StatusCode::OK)
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .response_deadline(Duration::from_secs(30))
        .redelivery_window(8 * DAY)
}

/// Answers the validation, in which Event Grid expects its code back.
fn validation(request: &HandshakeRequest<'_>) -> Option<Handshake> {
    const EVENT: &str = "SubscriptionValidation";
    if request.header("aeg-event-type") != Some(EVENT) {
        return None;
    }
    let body: Value = serde_json::from_slice(request.body()).ok()?;
    let code = body.get(0)?.get("data")?.get("validationCode")?.as_str()?;
    Some(Handshake::json(EVENT, &json!({"validationResponse": code})))
}
