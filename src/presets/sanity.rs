use std::time::Duration;

use http::{HeaderName, StatusCode};

use crate::provider::signature::{Encoding, Hmac, Tolerance};
use crate::provider::{HOUR, MIB, Provider, SecretSource, Source};

/// [Sanity](https://www.sanity.io/docs/content-lake/webhooks): GROQ-powered webhooks.
///
/// - Signature: `sanity-webhook-signature: t=<milliseconds>,v1=<base64url>`, an HMAC-SHA256 of
///   `<milliseconds>.<body>`, in base64 with the URL-safe alphabet and without padding.
/// - Tolerance: 24 hours in the past, any time in the future. The limit is the redelivery window; Sanity's SDK does not
///   check the time. Sanity sends one request at a time, so requests behind a slow handler arrive late, and a shorter
///   tolerance could refuse them. **For 24 hours, anyone who has captured a request can send it again under a fresh
///   id.**
/// - Delivery id: `idempotency-key`, **not** covered by the signature. Event type:
///   `sanity-operation`.
#[doc = include_str!("facts/sanity.md")]
pub fn sanity(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::timestamped(HeaderName::from_static("sanity-webhook-signature"))
        .encoding(Encoding::Base64Url)
        .timestamp_in_milliseconds();
    Provider::custom("sanity")
        .signature(scheme, secrets)
        .delivery_id(Source::header(HeaderName::from_static("idempotency-key")))
        .event_type(Source::header(HeaderName::from_static("sanity-operation")))
        .event_names_like(["update"])
        .tolerance(Tolerance::past_only(24 * HOUR))
        .body_limit(4 * MIB)
        .redelivery_window(24 * HOUR)
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .response_deadline(Duration::from_secs(30))
}
