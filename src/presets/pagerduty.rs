use std::time::Duration;

use http::{HeaderName, StatusCode};

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [PagerDuty](https://developer.pagerduty.com/docs/webhooks-overview), the webhooks V3.
///
/// - Signature: `X-PagerDuty-Signature: v1=<hex>`, with more of them after commas, an
///   HMAC-SHA256 of the body. One matching signature is enough.
/// - Delivery id: `$.event.id`, covered by the signature. `X-Webhook-Id`, which PagerDuty names for
///   it, is not covered. Event type: `$.event.event_type`.
#[doc = include_str!("facts/pagerduty.md")]
pub fn pagerduty(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-pagerduty-signature"))
        .prefix("v1=")
        .separator(",");
    Provider::custom("pagerduty")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("event").then("id")))
        .event_type(Source::json(JsonPath::member("event").then("event_type")))
        .event_names_like(["incident.priority_updated"])
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .response_deadline(Duration::from_secs(5))
}
