use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, Provider, Retry, SecretSource, Source};

/// [Modern Treasury](https://docs.moderntreasury.com/platform/reference/webhooks).
///
/// - Signature: `X-Signature: <hex>`, an HMAC-SHA256 of the body under the webhook key.
/// - Tolerance: any age, as no time is signed.
/// - Delivery id: the SHA-256 of the body, covered by the signature. The unique id of the webhook is in
///   a header, which is not covered. `$.data.id` would be wrong: each event of an object has the same.
///   Event type: `$.event`.
/// - Redelivery: with growing intervals whose end is not confirmed; the redelivery window is 30 days.
/// - Retry: the same body (likely). If it differs, the handler runs again.
/// - Answer: any 2xx.
/// - Response deadline: 5 seconds.
/// - Handshake: none.
/// - Body limit: 2 MiB; Modern Treasury publishes none.
pub fn modern_treasury(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-signature"));
    Provider::custom("modern-treasury")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .event_type(Source::json(JsonPath::member("event")))
        .response_deadline(Duration::from_secs(5))
        .retry(Retry::identical().likely())
}
