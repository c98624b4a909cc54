use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Onfido](https://documentation.onfido.com/api/latest/#webhooks).
///
/// - Signature: `X-SHA2-Signature: <hex>`, an HMAC-SHA256 of the body under the token of the
///   webhook.
/// - Delivery id: none. The key is the SHA-256 of the body, which is covered by the signature.
///   Event type: `$.payload.action`.
/// - Redelivery: not confirmed; the redelivery window is 30 days.
/// - Response deadline: not confirmed; 10 seconds are assumed.
/// - Body limit: 2 MiB; Onfido publishes none.
pub fn onfido(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-sha2-signature"));
    Provider::custom("onfido")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .event_type(Source::json(JsonPath::member("payload").then("action")))
}
