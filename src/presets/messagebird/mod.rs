use std::time::Duration;

use self::scheme::{ID, MessageBird};
use crate::provider::signature::Tolerance;
use crate::provider::{DAY, Provider, SecretSource, Source};

mod scheme;

/// [MessageBird](https://developers.messagebird.com/api/#verifying-http-requests), now Bird.
///
/// - Signature: `MessageBird-Signature-JWT`, a token with HS256, HS384 or HS512 under the signing
///   key. Its claims have the SHA-256 of the URL and, if there is one, of the body.
/// - Needs [`public_url`](Provider::public_url).
/// - Tolerance: that of the token alone, which counts from its `nbf` to its `exp`, a minute later, with
///   5 seconds of leeway.
/// - Delivery id: the claim `jti`, covered by the signature. Event type: none.
#[doc = facts!("messagebird")]
///
/// A webhook that is called with GET needs [`methods`](Provider::methods).
pub fn messagebird(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("messagebird")
        .signature(MessageBird, secrets)
        .delivery_id(Source::signed_value(ID))
        .response_deadline(Duration::from_secs(10))
        .redelivery_window(7 * DAY)
        .tolerance(Tolerance::unlimited())
}
