use std::time::Duration;

use http::{HeaderName, StatusCode};

use crate::provider::signature::Hmac;
use crate::provider::{Provider, SecretSource, Source};

/// [Xero](https://developer.xero.com/documentation/guides/webhooks/overview/).
///
/// - Signature: `x-xero-signature: <base64>`, an HMAC-SHA256 of the body.
/// - Delivery id: none is sent. The preset uses a SHA-256 of all members of the body except `entropy`, which
///   likely differs on a retry. They are covered by the signature; `$.firstEventSequence` and the times of the
///   events make each body unique. Event type: none; each element of `$.events` has an `eventType`.
#[doc = include_str!("facts/xero.md")]
pub fn xero(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::base64(HeaderName::from_static("x-xero-signature"));
    Provider::custom("xero")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest_without("entropy"))
        .success_status(StatusCode::OK)
        .rejection_status(StatusCode::UNAUTHORIZED)
        .empty_answers()
        .response_deadline(Duration::from_secs(5))
}
