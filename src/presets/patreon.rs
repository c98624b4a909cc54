use http::HeaderName;

use crate::provider::signature::{Hash, Hmac};
use crate::provider::{Provider, SecretSource, Source};

/// [Patreon](https://docs.patreon.com/#webhooks). Requires the feature `md5`.
///
/// - Signature: `X-Patreon-Signature: <hex>`, an **HMAC-MD5** of the body. Patreon offers nothing
///   better. No way is known to forge an HMAC-MD5 without its key, but MD5 itself is broken.
/// - Delivery id: none, and **nothing is deduplicated** ([`Source::receipt`]): a body contains no time, so a
///   member who changes and changes back causes the same body twice, and a digest would lose the later event. A
///   retry runs the handler again, and so does a captured request, so let the handler set the state that the body
///   describes, which can safely happen twice. Event type: `X-Patreon-Event`, **not** covered by the signature.
/// - Groups: `members:*`.
#[doc = include_str!("facts/patreon.md")]
pub fn patreon(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-patreon-signature")).hash(Hash::Md5);
    Provider::custom("patreon")
        .signature(scheme, secrets)
        .delivery_id(Source::receipt())
        .event_type(Source::header(HeaderName::from_static("x-patreon-event")))
        .event_names_like(["members:create", "members:pledge:create"])
}
