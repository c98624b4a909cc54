use std::time::Duration;

use http::HeaderName;
use http::header::AUTHORIZATION;

use crate::provider::signature::{ByHeader, Token};
use crate::provider::{DAY, JsonPath, MIB, Provider, SecretSource, Source};

/// [Vapi](https://docs.vapi.ai/server-url/server-authentication): messages to a server URL.
///
/// **Nothing is signed: anyone who learns the secret can send any message.** Vapi can sign with an HMAC instead.
/// By default, it signs `<time>.<body>` and sends the hex signature in `x-signature` and the time in
/// `x-timestamp`; the format of the time is not documented, and the hash has no default. Describe your settings
/// with [`Hmac`](crate::provider::signature::Hmac) and [`Provider::custom`].
///
/// - Signature: none. The secret is in `X-Vapi-Secret`, verbatim, or else in `Authorization` after
///   `Bearer `, which is what a bearer credential sends by default.
/// - Delivery id: none is sent. The preset uses the SHA-256 of the body, which is not covered,
///   because nothing is signed; `$.message.timestamp` likely makes each body unique. Event type:
///   `$.message.type`.
#[doc = include_str!("facts/vapi.md")]
pub fn vapi(secrets: impl Into<SecretSource>) -> Provider {
    const SECRET: HeaderName = HeaderName::from_static("x-vapi-secret");
    let bearer = Token::header(AUTHORIZATION).prefix("Bearer ");
    let scheme = ByHeader::new(SECRET, Token::header(SECRET), bearer);
    Provider::custom("vapi")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .event_type(Source::json(JsonPath::member("message").then("type")))
        .event_names_like(["status-update"])
        .and_event_names(&[
            "assistant.started",
            "call.delete.failed",
            "call.deleted",
            "chat.created",
            "chat.deleted",
            "session.created",
            "session.deleted",
            "session.updated",
        ])
        .body_limit(4 * MIB)
        .response_deadline(Duration::from_secs(20))
        .redelivery_window(DAY)
}
