use std::time::Duration;

use http::{HeaderName, StatusCode};

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [PagerDuty](https://developer.pagerduty.com/docs/webhooks-overview): V3 webhooks.
///
/// - Signature: `X-PagerDuty-Signature: v1=<hex>`, an HMAC-SHA256 of the body. Further signatures
///   may follow after commas; one matching signature is enough.
/// - Delivery id: `$.event.id`, covered by the signature. `X-Webhook-Id`, which PagerDuty names for
///   deduplication, is not covered. Event type: `$.event.event_type`.
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
