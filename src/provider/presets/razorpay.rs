use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, Provider, Retry, SecretSource, Source};

/// [Razorpay](https://razorpay.com/docs/webhooks/validate-test/).
///
/// - Signature: `X-Razorpay-Signature: <hex>`, an HMAC-SHA256 of the body.
/// - Delivery id: `x-razorpay-event-id`, **not** covered by the signature. Event type:
///   `$.event`.
/// - Redelivery: with increasing delays for 24 hours, unless the answer is a 2xx, and on request for
///   15 days; the redelivery window is 30 days.
/// - Retry: with the same id. It keeps the signature under the secret of its event's time, so give the
///   old secret as well after a change.
/// - Response deadline: 5 seconds.
/// - Switched off: after 24 hours of failures.
/// - Body limit: 2 MiB; Razorpay publishes none.
pub fn razorpay(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-razorpay-signature"));
    Provider::custom("razorpay")
        .signature(scheme, secrets)
        .delivery_id(Source::header(HeaderName::from_static(
            "x-razorpay-event-id",
        )))
        .event_type(Source::json(JsonPath::member("event")))
        .response_deadline(Duration::from_secs(5))
        .retry(Retry::identical().likely())
}
