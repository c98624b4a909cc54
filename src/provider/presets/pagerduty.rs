use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [PagerDuty](https://developer.pagerduty.com/docs/webhooks-overview), the webhooks V3.
///
/// - Signature: `X-PagerDuty-Signature: v1=<hex>`, with more of them after commas, an
///   HMAC-SHA256 of the body. One matching signature is enough.
/// - Delivery id: `$.event.id`, covered by the signature. `x-webhook-id` would be wrong: it
///   names the subscription (not confirmed). Event type: `$.event.event_type`.
/// - Redelivery: automatically, but not after a 4xx; the redelivery window is 30 days.
/// - Response deadline: not confirmed; 10 seconds are assumed.
/// - Body limit: 2 MiB; PagerDuty publishes none.
pub fn pagerduty(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-pagerduty-signature"))
        .prefix("v1=")
        .separator(",");
    Provider::custom("pagerduty")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("event").then("id")))
        .event_type(Source::json(JsonPath::member("event").then("event_type")))
}
