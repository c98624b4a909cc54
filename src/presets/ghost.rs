use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::{Hmac, SignedContent, Tolerance};
use crate::provider::{HOUR, Provider, SecretSource, Source};

/// [Ghost](https://ghost.org/docs/webhooks/): webhooks with a secret.
///
/// - Signature: `X-Ghost-Signature: sha256=<hex>, t=<milliseconds>`, an HMAC-SHA256 of the body directly followed
///   by the time. If the webhook has no secret, the header is missing, and this preset rejects the request.
/// - Tolerance: 1 hour on both sides.
/// - Delivery id: none is sent. The preset uses the SHA-256 of the body and the signed time together; both are
///   covered by the signature. Event type: none, so give each event its own route.
#[doc = include_str!("facts/ghost.md")]
pub fn ghost(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-ghost-signature"))
        .prefix("sha256=")
        .separator(", ")
        .timestamp_field("t=")
        .timestamp_in_milliseconds()
        .signed(SignedContent::new().body().timestamp());
    Provider::custom("ghost")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest().and(Source::signed_time()))
        .tolerance(Tolerance::two_sided(HOUR))
        .response_deadline(Duration::from_secs(2))
        .redelivery_window(HOUR)
}
