use http::header::ALLOW;
use http::{HeaderName, HeaderValue, Method, StatusCode};

use self::scheme::CloudEvents;
use crate::provider::{DAY, Handshake, HandshakeRequest, Provider, SecretSource, Source};

pub(super) mod event;
mod scheme;

/// [CloudEvents](https://github.com/cloudevents/spec/blob/main/cloudevents/http-webhook.md) 1.0 over HTTP, from
/// any sender that follows the CloudEvents webhook specification.
///
/// **Nothing is signed: anyone who learns the token can send any event.**
///
/// - Signature: none. `Authorization: Bearer <token>`, or `access_token` in the query, carries the configured
///   token verbatim.
/// - Delivery id: `ce-source` and `ce-id` together, or `$.source` and `$.id` of an event in structured mode;
///   **not** covered, because nothing is signed. If they are longer than 255 bytes, the SHA-256 of both. A batch
///   is identified by the SHA-256 of the body, so the handler runs again for an event that is sent again in
///   another batch. Two subscriptions likely get an event under the same id, so give each route its own endpoint
///   name. Event type: `ce-type`, or `$.type`.
#[doc = include_str!("../facts/cloudevents.md")]
pub fn cloudevents(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("cloudevents")
        .signature(CloudEvents, secrets)
        .delivery_id(Source::signed_value(event::ID))
        .event_type(Source::signed_value(event::TYPE))
        .unsigned_handshake(consent)
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .redelivery_window(30 * DAY)
}

/// Consents when an origin asks whether it may send.
pub(super) fn consent(request: &HandshakeRequest<'_>) -> Option<Handshake> {
    const ORIGIN: &str = "webhook-request-origin";
    let is_asked = request.method() == Method::OPTIONS;
    let is_name = |c: char| c.is_ascii_alphanumeric() || ".-".contains(c);
    let origin = request
        .header(ORIGIN)
        .filter(|origin| is_asked && !origin.is_empty() && origin.chars().all(is_name))?;
    let handshake = Handshake::empty("OPTIONS")
        .header(
            HeaderName::from_static("webhook-allowed-origin"),
            HeaderValue::from_str(origin).ok()?,
        )
        .header(
            HeaderName::from_static("webhook-allowed-rate"),
            HeaderValue::from_static("*"),
        )
        .header(ALLOW, HeaderValue::from_static("POST"));
    Some(handshake)
}
