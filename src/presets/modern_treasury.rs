use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Modern Treasury](https://docs.moderntreasury.com/platform/reference/webhooks).
///
/// - Signature: `X-Signature: <hex>`, an HMAC-SHA256 of the body under the webhook key.
/// - Tolerance: any age, because no time is signed.
/// - Delivery id: the SHA-256 of the body, covered by the signature. The webhook's unique id is in a header, which
///   is not covered. `$.data.id` would be wrong: it is the same for every event of an object. Event type:
///   `$.data.object`, such as `payment_order`.
/// - Action: `$.event`, as in `payment_order.created`.
#[doc = include_str!("facts/modern-treasury.md")]
pub fn modern_treasury(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-signature"));
    Provider::custom("modern-treasury")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .event_type(Source::json(JsonPath::member("data").then("object")))
        .event_action(Source::json(JsonPath::member("event")))
        .event_names_like(["payment_order", "payment_order.begin_processing"])
        .livemode(JsonPath::member("data").then("live_mode"))
        .response_deadline(Duration::from_secs(5))
}
