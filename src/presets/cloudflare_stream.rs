use http::HeaderName;

use crate::provider::signature::{Hmac, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Cloudflare
/// Stream](https://developers.cloudflare.com/stream/manage-video-library/using-webhooks/).
///
/// - Signature: `Webhook-Signature: time=<time>,sig1=<hex>`, an HMAC-SHA256 of `<time>.<body>`. The
///   key is the secret as text, not decoded, although it looks like hexadecimal digits.
/// - Tolerance: 30 days in the past, any time in the future. The limit is the redelivery window,
///   because a retry may carry the timestamp of the first attempt: no source says that it carries a
///   new one. Cloudflare asks receivers to discard requests that are too old, but gives no limit. A
///   replay is still recognized as a duplicate.
/// - Delivery id: none is sent. The preset uses the SHA-256 of the body, which is covered by the
///   signature; `$.modified` and `$.uid` make each body unique. Event type: `$.status.state`.
#[doc = include_str!("facts/cloudflare-stream.md")]
pub fn cloudflare_stream(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("webhook-signature"))
        .prefix("sig1=")
        .separator(",")
        .timestamp_field("time=");
    Provider::custom("cloudflare-stream")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .event_type(Source::json(JsonPath::member("status").then("state")))
        .event_names_like(["ready", "live-inprogress"])
        .tolerance(Tolerance::past_only(30 * DAY))
}
