use http::{HeaderName, StatusCode};

use crate::provider::signature::{Hmac, Key};
use crate::provider::{Provider, SecretSource, Source};

/// [Airtable](https://airtable.com/developers/web/api/webhooks-overview).
///
/// - Signature: `X-Airtable-Content-MAC: hmac-sha256=<hex>`, an HMAC-SHA256 of the body. The secret
///   is the `macSecretBase64`, which Airtable shows once, when the webhook is created. Its decoded
///   bytes are the key.
/// - Delivery id: none is sent. The preset uses the SHA-256 of the body, which is covered by the
///   signature; `$.timestamp` makes each body unique. The body is only a ping: the handler has to
///   ask Airtable for the changes since its cursor. Event type: none.
#[doc = include_str!("facts/airtable.md")]
pub fn airtable(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-airtable-content-mac"))
        .prefix("hmac-sha256=")
        .key(Key::Base64);
    Provider::custom("airtable")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .success_status(StatusCode::OK)
        .empty_answers()
}
