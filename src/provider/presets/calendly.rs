use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::{Hmac, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Calendly](https://developer.calendly.com/api-docs/ZG9jOjM2MzE2MDM4-webhook-signatures).
///
/// - Signature: `Calendly-Webhook-Signature: t=<time>,v1=<hex>`, an HMAC-SHA256 of
///   `<time>.<body>` under the signing key.
/// - Tolerance: 180 seconds, past only, as in Calendly's sample.
/// - Delivery id: none. The key is the SHA-256 of the body, which is covered by the signature;
///   `$.created_at` and `$.payload.uri` make it unique. Event type: `$.event`.
/// - Redelivery: for 24 hours, with increasing delays; the redelivery window is 3 days, to
///   leave room for late ones.
/// - Response deadline: not confirmed; 10 seconds are assumed.
/// - Switched off: after 24 hours of failures. A new webhook has to be made then.
/// - Body limit: 2 MiB; Calendly publishes none.
pub fn calendly(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::timestamped(HeaderName::from_static("calendly-webhook-signature"));
    Provider::custom("calendly")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .event_type(Source::json(JsonPath::member("event")))
        .tolerance(Tolerance::past_only(Duration::from_secs(180)))
        .redelivery_window(3 * DAY)
}
