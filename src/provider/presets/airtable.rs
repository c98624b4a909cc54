use http::{HeaderName, StatusCode};

use crate::provider::signature::{Hmac, Key};
use crate::provider::{Provider, Retry, SecretSource, Source};

/// [Airtable](https://airtable.com/developers/web/api/webhooks-overview).
///
/// - Signature: `X-Airtable-Content-MAC: hmac-sha256=<hex>`, an HMAC-SHA256 of the body. The
///   secret is the `macSecretBase64` that Airtable shows once, when the webhook is created; its
///   decoded bytes are the key.
/// - Delivery id: none. The key is the SHA-256 of the body, which is covered by the signature;
///   `$.timestamp` makes it unique. The body is a ping: the handler asks Airtable for the
///   changes since its cursor. Event type: none.
/// - Redelivery: automatically; for how long is not confirmed, and the redelivery window is 30
///   days.
/// - Retry: not documented. One with a new `$.timestamp` runs the handler again.
/// - Answer: 200 or 204 without a body, so every success gets 200, and no answer has a body.
/// - Response deadline: not confirmed; 10 seconds are assumed.
/// - Switched off: a webhook expires after 7 days unless it is refreshed (second-hand).
/// - Body limit: 2 MiB; pings are small.
pub fn airtable(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-airtable-content-mac"))
        .prefix("hmac-sha256=")
        .key(Key::Base64);
    Provider::custom("airtable")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .success_status(StatusCode::OK)
        .empty_answers()
        .retry(Retry::unknown().id_unknown())
}
