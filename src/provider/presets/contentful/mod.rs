use std::time::Duration;

use http::HeaderName;

use self::scheme::Contentful;
use crate::provider::signature::Tolerance;
use crate::provider::{HOUR, Provider, SecretSource, Source};

mod scheme;

/// [Contentful](https://www.contentful.com/developers/docs/webhooks/request-verification/).
///
/// - Signature: `x-contentful-signature: <hex>`, an HMAC-SHA256 of the method, the path, the query,
///   the headers that `x-contentful-signed-headers` lists, and the body, under a secret of
///   64 characters.
/// - Needs [`public_url`](Provider::public_url) only if a proxy changes the path.
/// - Tolerance: 30 seconds, past only, of `x-contentful-timestamp`.
/// - Delivery id: `X-Contentful-Idempotency-Key`. It is covered by the signature only if it is among
///   the signed headers, which this preset does not ask for. Event type: `X-Contentful-Topic`.
/// - Redelivery: twice, at intervals of about 30 seconds (not confirmed); the redelivery window is
///   24 hours, to leave room for late ones.
/// - Response deadline: 30 seconds (not confirmed).
/// - Handshake: none.
/// - Body limit: 2 MiB; Contentful publishes none.
pub fn contentful(secrets: impl Into<SecretSource>) -> Provider {
    let header = |name| Source::header(HeaderName::from_static(name));
    Provider::custom("contentful")
        .signature(Contentful, secrets)
        .delivery_id(header("x-contentful-idempotency-key"))
        .event_type(header("x-contentful-topic"))
        .tolerance(Tolerance::past_only(Duration::from_secs(30)))
        .response_deadline(Duration::from_secs(30))
        .redelivery_window(24 * HOUR)
}
