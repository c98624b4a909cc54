use http::{HeaderName, StatusCode};

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Lemon Squeezy](https://docs.lemonsqueezy.com/help/webhooks/signing-requests).
///
/// - Signature: `X-Signature: <hex>`, an HMAC-SHA256 of the body.
/// - Delivery id: none is sent. The preset uses the SHA-256 of the body, which is covered by the
///   signature. `$.meta.webhook_id` would be wrong: its documentation does not say that it is
///   unique. Event type: `X-Event-Name` or, if it is absent, `$.meta.event_name`.
#[doc = include_str!("facts/lemonsqueezy.md")]
pub fn lemonsqueezy(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-signature"));
    Provider::custom("lemonsqueezy")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .event_type(
            Source::header(HeaderName::from_static("x-event-name"))
                .or(Source::json(JsonPath::member("meta").then("event_name"))),
        )
        .event_names_like(["order_created"])
        .success_status(StatusCode::OK)
}
