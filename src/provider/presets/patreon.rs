use http::HeaderName;

use crate::provider::signature::{Hash, Hmac};
use crate::provider::{Provider, SecretSource, Source};

/// [Patreon](https://docs.patreon.com/#webhooks). Feature `md5`.
///
/// - Signature: `X-Patreon-Signature: <hex>`, an **HMAC-MD5** of the body. Patreon has nothing
///   better. No forgery of an HMAC-MD5 without its key is known, but MD5 itself is broken.
/// - Delivery id: none. The key is the SHA-256 of the body and the event type. The body is
///   signed, the event type is **not** covered by the signature. Two updates that leave a
///   member with the same attributes are one delivery. Event type: `X-Patreon-Event`.
/// - Redelivery: not documented in detail; the redelivery window is 30 days.
/// - Response deadline: not published; 10 seconds are assumed.
/// - Switched off: paused after failures, which `num_consecutive_times_failed` of the webhook
///   counts.
/// - Body limit: 2 MiB; Patreon publishes none.
pub fn patreon(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-patreon-signature")).hash(Hash::Md5);
    Provider::custom("patreon")
        .signature(scheme, secrets)
        .delivery_id(
            Source::header(HeaderName::from_static("x-patreon-event")).and(Source::body_digest()),
        )
        .event_type(Source::header(HeaderName::from_static("x-patreon-event")))
}
