use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::{Hmac, Tolerance};
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Cloudflare
/// Stream](https://developers.cloudflare.com/stream/manage-video-library/using-webhooks/).
///
/// - Signature: `Webhook-Signature: time=<time>,sig1=<hex>`, an HMAC-SHA256 of `<time>.<body>`.
///   The key is the secret as text, although it looks like hexadecimal digits.
/// - Tolerance: 300 seconds, past only; Cloudflare asks to discard what is too old, and names
///   no limit.
/// - Delivery id: none. The key is the SHA-256 of the body, which is covered by the signature.
///   Event type: `$.status.state`.
/// - Redelivery: not confirmed; the redelivery window is 30 days.
/// - Response deadline: not confirmed; 10 seconds are assumed.
/// - Body limit: 2 MiB; Cloudflare publishes none.
pub fn cloudflare_stream(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("webhook-signature"))
        .prefix("sig1=")
        .separator(",")
        .timestamp_field("time=");
    Provider::custom("cloudflare-stream")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .event_type(Source::json(JsonPath::member("status").then("state")))
        .tolerance(Tolerance::past_only(Duration::from_secs(300)))
}
