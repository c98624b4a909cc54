use http::StatusCode;

use self::scheme::Figma;
use crate::provider::{DAY, Handshake, HandshakeRequest, JsonPath, Provider, SecretSource, Source};

mod scheme;

/// [Figma](https://developers.figma.com/docs/rest-api/webhooks/).
///
/// **Nothing is signed: anyone who learns the passcode can send any event.**
///
/// - Signature: none. `$.passcode` in the body carries the configured passcode verbatim.
/// - Delivery id: a SHA-256 of all members of the body except `retries`, which counts the attempts.
///   Figma sends no id, and one file can have several events within a second. Event type:
///   `$.event_type`.
#[doc = include_str!("../facts/figma.md")]
pub fn figma(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("figma")
        .signature(Figma::new(), secrets)
        .delivery_id(Source::body_digest_without("retries"))
        .event_type(Source::json(JsonPath::member("event_type")))
        .event_names_like(["FILE_UPDATE"])
        .signed_handshake(ping)
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .redelivery_window(2 * DAY)
}

fn ping(request: &HandshakeRequest<'_>) -> Option<Handshake> {
    let event_type = request.json(&JsonPath::member("event_type"))?;
    (event_type == "PING").then(|| Handshake::empty(event_type))
}
