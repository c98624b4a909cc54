use std::time::Duration;

use http::{HeaderName, StatusCode};

use super::PublicKey;
use crate::provider::signature::PublicKeySignature;
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Wise](https://docs.wise.com/guides/developer/webhooks/event-handling). Requires the feature
/// `rsa`.
///
/// - Signature: `X-Signature-SHA256: <base64>`, an RSA signature (PKCS #1 v1.5) with SHA-256 of the
///   body. The [`PublicKey`] is Wise's public key in PEM; the sandbox has another key.
/// - Tolerance: any age, because no time is signed.
/// - Delivery id: the SHA-256 of the body, which is covered by the signature. `X-Delivery-Id` is not covered, and
///   it is not documented whether a retry keeps it. `$.data.occurred_at` and `$.sent_at` likely make each body
///   unique. Event type: `$.event_type`.
/// - Groups: `transfers#*`.
#[doc = include_str!("facts/wise.md")]
pub fn wise(keys: impl Into<SecretSource<PublicKey>>) -> Provider {
    let scheme = PublicKeySignature::rsa_sha256(HeaderName::from_static("x-signature-sha256"));
    Provider::custom("wise")
        .signature(scheme, keys.into().cast())
        .delivery_id(Source::body_digest())
        .event_type(Source::json(JsonPath::member("event_type")))
        .event_names_like(["transfers#state-change"])
        .payload_version(Source::json(JsonPath::member("schema_version")))
        .success_status(StatusCode::OK)
        .failure_status(StatusCode::INTERNAL_SERVER_ERROR)
        .response_deadline(Duration::from_secs(5))
}
