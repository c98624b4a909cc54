use self::scheme::{ID, MessageBird};
use crate::provider::signature::Tolerance;
use crate::provider::{DAY, Provider, SecretSource, Source};

mod scheme;

/// [Bird](https://docs.bird.com/api/notifications-api/api-reference/webhooks/verifying-a-webhook), and
/// [MessageBird](https://developers.messagebird.com/api/#verifying-http-requests), its older platform.
///
/// | platform | how it signs |
/// |---|---|
/// | Bird: webhook subscriptions | `MessageBird-Signature` with `MessageBird-Request-Timestamp` |
/// | MessageBird: the webhooks of its older APIs | `MessageBird-Signature-JWT` |
///
/// - Signature: of Bird base64, an HMAC-SHA256 under the signing key of the time, the URL and the 32 bytes of
///   the body's SHA-256, separated by line feeds. Of MessageBird a token with HS256, HS384 or HS512 under the
///   signing key. Its claims have the SHA-256 of the URL and, if there is one, of the body. A request with a
///   token is verified by it alone.
/// - Needs [`public_url`](Provider::public_url).
/// - Tolerance: for Bird 7 days, past only, which is the redelivery window, as nothing says that a retry is signed at a
///   new time. For MessageBird the life of the token, from its `nbf` to its `exp`, a minute later, with 5 seconds of
///   leeway.
/// - Delivery id: for Bird the SHA-256 of the body, as it sends no id; for MessageBird the claim `jti`. Both are
///   covered by the signature. Event type: none.
#[doc = include_str!("../facts/messagebird.md")]
///
/// A webhook that is called with GET needs [`methods`](Provider::methods).
pub fn messagebird(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("messagebird")
        .signature(MessageBird::new(), secrets)
        .delivery_id(Source::signed_value(ID))
        .redelivery_window(7 * DAY)
        .tolerance(Tolerance::past_only(7 * DAY))
}
