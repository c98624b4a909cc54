use std::time::Duration;

use http::{HeaderName, Method, StatusCode};

use crate::provider::signature::Hmac;
use crate::provider::{DAY, Handshake, HandshakeRequest, JsonPath, Provider, SecretSource, Source};

/// [Nylas](https://developer.nylas.com/docs/v3/notifications/): version 3 webhooks.
///
/// - Signature: `X-Nylas-Signature: <hex>`, an HMAC-SHA256 of the body.
/// - Delivery id: `$.id`, covered by the signature. Two webhooks likely get the same id, so give each route its
///   own endpoint name. Event type: `$.type`, with `.truncated` after it if the notification was too large.
#[doc = include_str!("facts/nylas.md")]
///
/// Leave `compressed_delivery` off: with it, Nylas signs the compressed body, from which the preset
/// cannot read the id.
pub fn nylas(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-nylas-signature"));
    Provider::custom("nylas")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("id")))
        .event_type(Source::json(JsonPath::member("type")))
        .event_names_like(["message.send_success"])
        .unsigned_handshake(challenge)
        .success_status(StatusCode::OK)
        .response_deadline(Duration::from_secs(10))
        .redelivery_window(7 * DAY)
}

fn challenge(request: &HandshakeRequest<'_>) -> Option<Handshake> {
    let challenge = request.query_value("challenge")?;
    (request.method() == Method::GET).then(|| Handshake::text("challenge", challenge))
}
