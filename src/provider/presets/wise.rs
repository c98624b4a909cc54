use std::time::Duration;

use http::{HeaderName, StatusCode};

use crate::provider::signature::PublicKeySignature;
use crate::provider::{JsonPath, Provider, Retry, SecretSource, Source};

/// [Wise](https://docs.wise.com/guides/developer/webhooks/event-handling). Feature `rsa`.
///
/// - Signature: `X-Signature-SHA256: <base64>`, an RSA signature (PKCS #1 v1.5) with SHA-256 of the
///   body. The secret is the public key of Wise in PEM; the sandbox has another one.
/// - Tolerance: any age, as no time is signed.
/// - Delivery id: the SHA-256 of the body, which is covered by the signature. `X-Delivery-Id` is not,
///   and whether it stays on a retry is not documented. `$.data.occurred_at` and `$.sent_at` make the
///   body unique (likely). Event type: `$.event_type`.
/// - Redelivery: 25 times over about two weeks, with growing intervals, and on request in the Developer
///   Hub; the redelivery window is 30 days. Several statuses of client errors, such as 400, are retried
///   3 times only.
/// - Retry: not documented. If `$.sent_at` differs, the handler runs again.
/// - Answer: 200 is success, or any 2xx: pages differ, so every success gets 200. Every failure gets
///   500, without `Retry-After`: Wise retries after that time instead of its own intervals, so that a
///   few seconds would use up all of the retries within minutes. Let the handler send none either.
/// - Response deadline: 5 seconds.
/// - Handshake: none. The test of a new subscription is signed like an event, and has the header
///   `X-Test-Notification`.
/// - Body limit: 2 MiB; Wise publishes none.
pub fn wise(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = PublicKeySignature::rsa_sha256(HeaderName::from_static("x-signature-sha256"));
    Provider::custom("wise")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .event_type(Source::json(JsonPath::member("event_type")))
        .success_status(StatusCode::OK)
        .failure_status(StatusCode::INTERNAL_SERVER_ERROR)
        .response_deadline(Duration::from_secs(5))
        .retry(Retry::unknown().id_unknown())
}
