use std::time::Duration;

use http::{HeaderName, StatusCode};

use crate::provider::signature::{Hmac, Tolerance};
use crate::provider::{HOUR, JsonPath, Provider, SecretSource, Source};

/// [Linear](https://linear.app/developers/webhooks).
///
/// - Signature: `Linear-Signature: <hex>`, an HMAC-SHA256 of the body.
/// - Tolerance: 24 hours on both sides of `$.webhookTimestamp` in the signed body, equal to the redelivery window.
///   Linear advises a minute, but the first retry comes after a minute, and likely carries the timestamp of the
///   first attempt. The header `Linear-Timestamp` is not signed and is ignored. A body without a time is rejected.
/// - Delivery id: `Linear-Delivery`, **not** covered by the signature: anyone who has captured a request can
///   replay it under another id until it is 24 hours old. [`replay_guard`](crate::IdempotentWebhook::replay_guard)
///   prevents such a replay. It never merges two events, because the time makes each body unique. Event type:
///   `Linear-Event`.
/// - Action: `$.action`, as in `Issue.create`.
#[doc = include_str!("facts/linear.md")]
pub fn linear(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("linear-signature"))
        .timestamp_json(JsonPath::member("webhookTimestamp"))
        .timestamp_in_milliseconds();
    Provider::custom("linear")
        .signature(scheme, secrets)
        .delivery_id(Source::header(HeaderName::from_static("linear-delivery")))
        .event_type(Source::header(HeaderName::from_static("linear-event")))
        .event_action(Source::json(JsonPath::member("action")))
        .event_names_like([
            "IssueLabel",
            "Issue.create",
            "AppUserNotification.issueMention",
        ])
        .tolerance(Tolerance::two_sided(24 * HOUR))
        .success_status(StatusCode::OK)
        .response_deadline(Duration::from_secs(5))
        .redelivery_window(24 * HOUR)
}
