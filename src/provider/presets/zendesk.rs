use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::{Hmac, SignedContent, Tolerance};
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Zendesk](https://developer.zendesk.com/documentation/webhooks/verifying/).
///
/// - Signature: `X-Zendesk-Webhook-Signature: <base64>`, an HMAC-SHA256 of `<time><body>`, with
///   the time as a date in `X-Zendesk-Webhook-Signature-Timestamp`. The key is the secret as
///   text, although it looks like base64.
/// - Tolerance: 300 seconds, on both sides; Zendesk states none.
/// - Delivery id: `X-Zendesk-Webhook-Invocation-Id`, **not** covered by the signature. Event
///   type: `$.type`, which the body of a trigger or an automation need not have.
/// - Redelivery: up to 3 times after a 409, and up to 5 times after a timeout (not confirmed);
///   the redelivery window is 30 days.
/// - Response deadline: 12 seconds (not confirmed).
/// - Switched off: for a while, by a circuit breaker (not confirmed).
/// - Body limit: 2 MiB; Zendesk publishes none.
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
        .tolerance(Tolerance::two_sided(Duration::from_secs(300)))
        .response_deadline(Duration::from_secs(12))
}
