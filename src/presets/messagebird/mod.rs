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
/// - Signature: from Bird, a base64 HMAC-SHA256, under the signing key, of the time, the URL and the 32 bytes of
///   the body's SHA-256, separated by line feeds. From MessageBird, a token with HS256, HS384 or HS512 under the
///   signing key, whose claims contain the SHA-256 of the URL and, if there is a body, of the body. If a request
///   has a token, only the token is verified.
/// - Needs [`public_url`](Provider::public_url).
/// - Tolerance: for Bird, 7 days in the past, any time in the future. The limit is the redelivery window, because a
///   retry may carry the timestamp of the first attempt: no source says that it carries a new one. For MessageBird, the
///   lifetime of the token, from its `nbf` to its `exp` a minute later, plus 5 seconds of leeway.
/// - Delivery id: for Bird, which sends no id, the SHA-256 of the body; for MessageBird, the claim `jti`. Both are
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
