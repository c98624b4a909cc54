use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Cal.com](https://cal.com/docs/developing/guides/automation/webhooks).
///
/// - Signature: `X-Cal-Signature-256: <hex>`, an HMAC-SHA256 of the body. If the webhook has no
///   secret, the header has a fixed text, which is refused.
/// - Delivery id: none is sent. The preset uses the SHA-256 of the body, which is covered by the signature;
///   `$.createdAt`, in milliseconds, and the booking make each body unique. **A custom payload template must
///   contain both; otherwise, if two events have the same body, the second is a duplicate.** `$.payload.uid` would
///   be wrong: a booking has several events. Event type: `$.triggerEvent`, which a template may leave out.
#[doc = include_str!("facts/cal.md")]
pub fn cal(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-cal-signature-256"));
    Provider::custom("cal")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .event_type(Source::json(JsonPath::member("triggerEvent")))
        .payload_version(Source::header(HeaderName::from_static(
            "x-cal-webhook-version",
        )))
        .event_names_like(["BOOKING_CREATED"])
        .redelivery_window(7 * DAY)
}
