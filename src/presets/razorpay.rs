use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Razorpay](https://razorpay.com/docs/webhooks/validate-test/).
///
/// - Signature: `X-Razorpay-Signature: <hex>`, an HMAC-SHA256 of the body.
/// - Delivery id: `x-razorpay-event-id`, **not** covered by the signature. Event type:
///   `$.event`.
#[doc = include_str!("facts/razorpay.md")]
pub fn razorpay(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-razorpay-signature"));
    Provider::custom("razorpay")
        .signature(scheme, secrets)
        .delivery_id(Source::header(HeaderName::from_static(
            "x-razorpay-event-id",
        )))
        .event_type(Source::json(JsonPath::member("event")))
        .event_names_like(["payment_link.paid"])
        .response_deadline(Duration::from_secs(5))
}
