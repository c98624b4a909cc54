use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::{Hmac, SignedContent, Tolerance};
use crate::provider::{HOUR, Provider, SecretSource, Source};

/// [Ghost](https://ghost.org/docs/webhooks/), the webhooks with a secret.
///
/// - Signature: `X-Ghost-Signature: sha256=<hex>, t=<milliseconds>`, an HMAC-SHA256 of the body and the time after it, with
///   nothing between. It is missing if the webhook has no secret, which this preset rejects.
/// - Tolerance: 1 hour, on both sides.
/// - Delivery id: none; the key is made of the SHA-256 of the body and of the time, both covered by the signature. Event type:
///   none: give each event a route of its own.
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
