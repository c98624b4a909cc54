use self::scheme::WebSub;
use crate::provider::{MIB, Provider, Retry, SecretSource, Source};

mod scheme;

/// [WebSub](https://www.w3.org/TR/websub/), once PubSubHubbub: the content that a hub distributes, of
/// feeds and of YouTube for example.
///
/// - Signature: `X-Hub-Signature: <method>=<hex>`, an HMAC of the body under the `hub.secret` of the
///   subscription. The hub chooses the method: `sha256`, `sha384`, `sha512` or, with the feature
///   `sha1`, `sha1`, which the specification discourages. A hub only signs if the
///   subscription has a secret.
/// - Tolerance: any age, as no time is signed.
/// - Delivery id: none, and **nothing is deduplicated** ([`Source::receipt`]), as content that comes back
///   to what it was has the same body. Compare in the handler with what it knows. Where each content has
///   a time, set [`delivery_id`](Provider::delivery_id) to [`Source::body_digest`]. Give each
///   subscription a URL of its own, as the topic is in the header `Link` only, which is **not** covered.
///   Event type: none.
/// - Handshake: the GET by which a hub checks a subscription is **not** answered, since anyone can
///   send it, for any topic. Answer it with [`unsigned_handshake`](Provider::unsigned_handshake):
///   `hub.challenge` as it is, if `hub.mode` and `hub.topic` are what was asked for. Hubs of
///   PubSubHubbub 0.3 send a `hub.verify_token` as well, and
///   [`verify_token`](Provider::verify_token) is enough for them.
/// - Redelivery: up to the hub, which should retry; the redelivery window is 30 days.
/// - Retry: up to the hub, which may send newer content instead. **It runs the handler again.**
/// - Answer: any 2xx. A 410 may end the subscription.
/// - Response deadline: up to the hub; 10 seconds are assumed.
/// - Body limit: 10 MiB, as the body is the whole content.
pub fn websub(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("websub")
        .signature(WebSub, secrets)
        .delivery_id(Source::receipt())
        .body_limit(10 * MIB)
        .retry(Retry::unknown().new_id())
}
