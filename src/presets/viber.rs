use http::{HeaderName, StatusCode};

use crate::provider::signature::Hmac;
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Viber](https://developers.viber.com/docs/api/rest-bot-api/): bot callbacks.
///
/// - Signature: `X-Viber-Content-Signature: <hex>`, an HMAC-SHA256 of the body under the bot's authentication
///   token.
/// - Tolerance: any age, because no time is signed.
/// - Delivery id: the SHA-256 of the body, covered by the signature. `$.message_token` would be wrong: it is the
///   same when a message was delivered and when it was seen. Event type: `$.event`.
#[doc = include_str!("facts/viber.md")]
pub fn viber(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-viber-content-signature"));
    Provider::custom("viber")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .event_type(Source::json(JsonPath::member("event")))
        .event_names_like(["message", "conversation_started"])
        .success_status(StatusCode::OK)
        .redelivery_window(DAY)
}
