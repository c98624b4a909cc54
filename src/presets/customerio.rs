use std::time::Duration;

use http::{HeaderName, StatusCode};

use crate::provider::signature::{Hmac, SignedContent, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Customer.io](https://docs.customer.io/api/webhooks/): the reporting webhooks.
///
/// - Signature: `X-CIO-Signature: <hex>`, an HMAC-SHA256 of `v0:<time>:<body>` with the time in
///   `X-CIO-Timestamp` (second-hand).
/// - Tolerance: 30 days in the past, any time in the future. The limit is the redelivery window; Customer.io documents
///   no tolerance.
/// - Delivery id: `$.event_id`, covered by the signature. Event type: `$.object_type`, such as `email`.
/// - Action: `$.metric`, as in `email.opened`.
#[doc = include_str!("facts/customerio.md")]
pub fn customerio(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-cio-signature"))
        .timestamp_header(HeaderName::from_static("x-cio-timestamp"))
        .signed(
            SignedContent::new()
                .text("v0:")
                .timestamp()
                .text(":")
                .body(),
        );
    Provider::custom("customerio")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("event_id")))
        .event_type(Source::json(JsonPath::member("object_type")))
        .event_action(Source::json(JsonPath::member("metric")))
        .event_names_like([
            "email",
            "in_app",
            "email.sent",
            "in_app.cio_subscription_preferences_changed",
        ])
        .tolerance(Tolerance::past_only(30 * DAY))
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .response_deadline(Duration::from_secs(4))
}
