use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::{Hmac, Tolerance};
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Chatwoot](https://www.chatwoot.com/docs/product/features/webhooks), in the versions that sign.
///
/// - Signature: `X-Chatwoot-Signature: sha256=<hex>`, an HMAC-SHA256 of `<time>.<body>` with the time in
///   `X-Chatwoot-Timestamp` (second-hand).
/// - Tolerance: 300 seconds on both sides.
/// - Delivery id: `X-Chatwoot-Delivery`, **not** covered by the signature. Event type: `$.event`.
#[doc = include_str!("facts/chatwoot.md")]
///
/// Older versions sign nothing. This preset rejects their requests.
pub fn chatwoot(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-chatwoot-signature"))
        .prefix("sha256=")
        .timestamp_header(HeaderName::from_static("x-chatwoot-timestamp"));
    Provider::custom("chatwoot")
        .signature(scheme, secrets)
        .delivery_id(Source::header(HeaderName::from_static(
            "x-chatwoot-delivery",
        )))
        .event_type(Source::json(JsonPath::member("event")))
        .event_names_like(["message_created"])
        .tolerance(Tolerance::two_sided(Duration::from_secs(300)))
        .response_deadline(Duration::from_secs(5))
}
