use std::time::Duration;

use http::{HeaderName, StatusCode};

use crate::provider::signature::{Hmac, SignedContent, Tolerance};
use crate::provider::{HOUR, JsonPath, Provider, SecretSource, Source};

/// [Zendesk](https://developer.zendesk.com/documentation/webhooks/verifying/).
///
/// - Signature: `X-Zendesk-Webhook-Signature: <base64>`, an HMAC-SHA256 of `<time><body>`, where
///   the time is the date in `X-Zendesk-Webhook-Signature-Timestamp`. The key is the secret as
///   text, not decoded, although it looks like base64.
/// - Tolerance: 24 hours on both sides, equal to the redelivery window; Zendesk documents no tolerance.
/// - Delivery id: `X-Zendesk-Webhook-Invocation-Id`, **not** covered by the signature: anyone who has captured a
///   request can replay it under another id until it is 24 hours old. To prevent this, set
///   [`replay_guard`](crate::IdempotentWebhook::replay_guard), unless a trigger sends the same body for different
///   events. Event type: `$.type`, which the body of a trigger or an automation may lack.
#[doc = include_str!("facts/zendesk.md")]
pub fn zendesk(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::base64(HeaderName::from_static("x-zendesk-webhook-signature"))
        .timestamp_header(HeaderName::from_static(
            "x-zendesk-webhook-signature-timestamp",
        ))
        .timestamp_in_rfc_3339()
        .signed(SignedContent::new().timestamp().body());
    Provider::custom("zendesk")
        .signature(scheme, secrets)
        .delivery_id(Source::header(HeaderName::from_static(
            "x-zendesk-webhook-invocation-id",
        )))
        .event_type(Source::json(JsonPath::member("type")))
        .payload_version(Source::json(JsonPath::member("zendesk_event_version")))
        .tolerance(Tolerance::two_sided(24 * HOUR))
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .response_deadline(Duration::from_secs(12))
        .redelivery_window(24 * HOUR)
}
