use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{DAY, JsonPath, Provider, Retry, SecretSource, Source};

/// [Cal.com](https://cal.com/docs/developing/guides/automation/webhooks).
///
/// - Signature: `X-Cal-Signature-256: <hex>`, an HMAC-SHA256 of the body. Of a webhook without a
///   secret, it is a fixed text, which is refused.
/// - Delivery id: none. The key is the SHA-256 of the body, which is covered by the signature;
///   `$.createdAt`, in milliseconds, and the booking make it unique. **A custom payload template
///   needs both, or two events with the same body are one delivery.** `$.payload.uid` would be wrong:
///   a booking has several events. Event type: `$.triggerEvent`, which a template need not have.
/// - Redelivery: none, unless the server sends through its queue of tasks, as Cal.com's source has
///   it; whether cal.com itself does is not confirmed. The redelivery window is 7 days.
/// - Retry: from the queue the same body, with the `$.createdAt` of the first attempt (likely).
///   **A delivery that fails may be lost**, unless the layer keeps it.
/// - Response deadline: not confirmed; 10 seconds are assumed.
/// - Handshake: none. A test from the dashboard is a delivery like any other.
/// - Body limit: 2 MiB; Cal.com publishes none.
pub fn cal(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-cal-signature-256"));
    Provider::custom("cal")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .event_type(Source::json(JsonPath::member("triggerEvent")))
        .redelivery_window(7 * DAY)
        .retry(Retry::identical().likely())
}
