use http::{HeaderName, StatusCode};

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, Provider, Retry, SecretSource, Source};

/// [Lemon Squeezy](https://docs.lemonsqueezy.com/help/webhooks/signing-requests).
///
/// - Signature: `X-Signature: <hex>`, an HMAC-SHA256 of the body.
/// - Delivery id: none. The key is the SHA-256 of the body, which is covered by the signature.
///   `$.meta.webhook_id` would be wrong: it is not documented to be unique. Event type:
///   `X-Event-Name` or, if it is absent, `$.meta.event_name`.
/// - Redelivery: 3 times, for example after 5, 25 and 125 seconds; the redelivery window is 30
///   days, since deliveries can be sent again by hand (not confirmed).
/// - Retry: nothing says that it has another body. If it has, the handler runs again.
/// - Answer: only 200 is success, so every success gets it.
/// - Response deadline: not published; 10 seconds are assumed.
/// - Body limit: 2 MiB; Lemon Squeezy publishes none.
pub fn lemonsqueezy(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-signature"));
    Provider::custom("lemonsqueezy")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .event_type(
            Source::header(HeaderName::from_static("x-event-name"))
                .or(Source::json(JsonPath::member("meta").then("event_name"))),
        )
        .success_status(StatusCode::OK)
        .retry(Retry::identical().likely())
}
