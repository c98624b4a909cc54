use std::time::Duration;

use http::{HeaderName, StatusCode};

use crate::provider::signature::Hmac;
use crate::provider::{Provider, Retry, SecretSource, Source};

/// [Xero](https://developer.xero.com/documentation/guides/webhooks/overview/).
///
/// - Signature: `x-xero-signature: <base64>`, an HMAC-SHA256 of the body.
/// - Delivery id: none. The key is the SHA-256 of the body, which is covered by the signature;
///   `$.firstEventSequence` and the times of the events make it unique. Event type: none; each
///   element of `$.events` has an `eventType`.
/// - Handshake: Xero sends requests with right and with wrong signatures, and expects 200 for
///   the former and 401 for the latter. They reach the handler with an empty list of events.
/// - Redelivery: ever less often for 24 hours; the redelivery window is 30 days.
/// - Retry: not documented.
/// - Answer: exactly 200, so every success gets it, and no body, so every answer is without one. There
///   must be no cookies either: mind what a middleware adds.
/// - Response deadline: 5 seconds.
/// - Switched off: after 24 hours of failures.
/// - Body limit: 2 MiB; Xero publishes none.
pub fn xero(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::base64(HeaderName::from_static("x-xero-signature"));
    Provider::custom("xero")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .success_status(StatusCode::OK)
        .empty_answers()
        .response_deadline(Duration::from_secs(5))
        .retry(Retry::unknown())
}
