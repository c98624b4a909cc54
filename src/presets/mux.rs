use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::{Hmac, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Mux](https://www.mux.com/docs/core/verify-webhook-signatures).
///
/// - Signature: `Mux-Signature: t=<time>,v1=<hex>`, an HMAC-SHA256 of `<time>.<body>`. If there are several `v1`,
///   one matching signature is enough.
/// - Tolerance: 3 days in the past, any time in the future. The limit is the redelivery window, because a retry may
///   carry the timestamp of the first attempt: no source says that it carries a new one. Mux's SDKs allow 300 seconds.
/// - Delivery id: `$.id`, covered by the signature. Event type: `$.type`.
#[doc = include_str!("facts/mux.md")]
pub fn mux(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::timestamped(HeaderName::from_static("mux-signature"));
    Provider::custom("mux")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("id")))
        .event_type(Source::json(JsonPath::member("type")))
        .event_names_like(["video.live_stream.active", "delivery.high_traffic"])
        .tolerance(Tolerance::past_only(3 * DAY))
        .response_deadline(Duration::from_secs(5))
        .redelivery_window(3 * DAY)
}
