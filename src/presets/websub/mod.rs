use self::scheme::WebSub;
use crate::provider::{MIB, Provider, SecretSource, Source};

mod scheme;

/// [WebSub](https://www.w3.org/TR/websub/), formerly PubSubHubbub: the content that a hub distributes, for example
/// from feeds and from YouTube.
///
/// - Signature: `X-Hub-Signature: <method>=<hex>`, an HMAC of the body under the `hub.secret` of the subscription.
///   The hub chooses the method: `sha256`, `sha384`, `sha512` or `sha1`, which the specification discourages.
///   **YouTube and other PubSubHubbub 0.4 hubs only use `sha1`, which needs the feature `sha1`.** Without the
///   feature, every request from these hubs is rejected, and the reason says why. A hub only signs if the
///   subscription has a secret.
/// - Tolerance: any age, because no time is signed.
/// - Delivery id: none, and **nothing is deduplicated** ([`Source::receipt`]), because content that changes and
///   changes back has the same body. Let the handler compare the content with what it already has. If all of your
///   content contains a time, set [`delivery_id`](Provider::delivery_id) to [`Source::body_digest`]. Give each
///   subscription its own URL, because the topic is only in the header `Link`, which is **not** covered. Event
///   type: none.
#[doc = include_str!("../facts/websub.md")]
pub fn websub(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("websub")
        .signature(WebSub, secrets)
        .delivery_id(Source::receipt())
        .body_limit(10 * MIB)
}
