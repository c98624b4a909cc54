use std::time::Duration;

use http::{HeaderName, StatusCode};

use crate::provider::signature::Hmac;
use crate::provider::{Provider, SecretSource, Source};

/// [QuickBooks Online](https://developer.intuit.com/app/developer/qbo/docs/develop/webhooks), in
/// the CloudEvents format and in the older format.
///
/// - Signature: `intuit-signature: <base64>`, an HMAC-SHA256 of the body under the verifier
///   token.
/// - Delivery id: none for the batch. The preset uses the SHA-256 of the body, which is covered by
///   the signature. Only in the CloudEvents format does each event of a batch have its own id,
///   `$[].id`; in the older format, the time of each change makes the body unique. Event type:
///   none; each event has a `type`.
#[doc = include_str!("facts/quickbooks.md")]
pub fn quickbooks(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::base64(HeaderName::from_static("intuit-signature"));
    Provider::custom("quickbooks")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .response_deadline(Duration::from_secs(3))
        .success_status(StatusCode::OK)
}
