use std::time::Duration;

use http::{HeaderName, StatusCode};

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, Provider, Retry, SecretSource, Source};

/// [PagerDuty](https://developer.pagerduty.com/docs/webhooks-overview), the webhooks V3.
///
/// - Signature: `X-PagerDuty-Signature: v1=<hex>`, with more of them after commas, an
///   HMAC-SHA256 of the body. One matching signature is enough.
/// - Delivery id: `$.event.id`, covered by the signature. `X-Webhook-Id`, which PagerDuty names for
///   it, is not covered. Event type: `$.event.event_type`.
/// - Redelivery: for up to 48 hours after no answer, a 5xx or a 429; newer webhooks of the same
///   object wait behind it. The redelivery window is 30 days.
/// - Retry: nothing says that it has another body.
/// - Answer: a 4xx other than 429 is final, so every failure gets 503.
/// - Response deadline: 5 seconds.
/// - Switched off: for 24 hours, after 3 webhooks in a row were given up (by an older page).
/// - Body limit: 2 MiB; PagerDuty sends at most 256 KB.
pub fn pagerduty(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-pagerduty-signature"))
        .prefix("v1=")
        .separator(",");
    Provider::custom("pagerduty")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("event").then("id")))
        .event_type(Source::json(JsonPath::member("event").then("event_type")))
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .response_deadline(Duration::from_secs(5))
        .retry(Retry::identical().likely())
}
