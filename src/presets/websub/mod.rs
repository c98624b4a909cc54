use self::scheme::WebSub;
use crate::provider::{MIB, Provider, SecretSource, Source};

mod scheme;

/// [WebSub](https://www.w3.org/TR/websub/), once PubSubHubbub: the content that a hub distributes, of
/// feeds and of YouTube for example.
///
/// - Signature: `X-Hub-Signature: <method>=<hex>`, an HMAC of the body under the `hub.secret` of the
///   subscription. The hub chooses the method: `sha256`, `sha384`, `sha512` or `sha1`, which the
///   specification discourages. **YouTube and other hubs of PubSubHubbub 0.4 know `sha1` only: it needs the
///   feature `sha1`**, without which each of their requests is rejected with a reason that says so. A hub only
///   signs if the subscription has a secret.
/// - Tolerance: any age, as no time is signed.
/// - Delivery id: none, and **nothing is deduplicated** ([`Source::receipt`]), as content that comes back
///   to what it was has the same body. Compare in the handler with what it knows. Where each content has
///   a time, set [`delivery_id`](Provider::delivery_id) to [`Source::body_digest`]. Give each
///   subscription a URL of its own, as the topic is in the header `Link` only, which is **not** covered.
///   Event type: none.
#[doc = include_str!("../facts/websub.md")]
pub fn websub(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("websub")
        .signature(WebSub, secrets)
        .delivery_id(Source::receipt())
        .body_limit(10 * MIB)
}
