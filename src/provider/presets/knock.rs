use http::HeaderName;

use crate::provider::signature::{Hmac, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, Retry, SecretSource, Source};

/// [Knock](https://docs.knock.app/developer-tools/outbound-webhooks), its outbound webhooks.
///
/// - Signature: `x-knock-signature: t=<milliseconds>,s=<base64>`, an HMAC-SHA256 of
///   `<milliseconds>.<body>`.
/// - Tolerance: 30 days, past only, which is the redelivery window. Knock suggests 5 minutes, but
///   does not say that a retry is signed at a new time.
/// - Delivery id: none. The key is the SHA-256 of the body, which is covered by the signature;
///   `$.created_at`, in microseconds, and the entity in `$.data` make it unique. Event type:
///   `$.type`.
/// - Redelivery: 8 attempts, after a 3xx, a 4xx, a 5xx or a timeout; over how long is not documented,
///   and the redelivery window is 30 days.
/// - Retry: not documented. One with another body runs the handler again.
/// - Answer: any 2xx.
/// - Response deadline: not confirmed; 10 seconds are assumed.
/// - Handshake: none.
/// - Body limit: 2 MiB; Knock publishes none.
pub fn knock(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::base64(HeaderName::from_static("x-knock-signature"))
        .prefix("s=")
        .separator(",")
        .timestamp_field("t=")
        .timestamp_in_milliseconds();
    Provider::custom("knock")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .event_type(Source::json(JsonPath::member("type")))
        .tolerance(Tolerance::past_only(30 * DAY))
        .redelivery_window(30 * DAY)
        .retry(Retry::unknown().id_unknown())
}
