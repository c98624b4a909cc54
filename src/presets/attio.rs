use http::{HeaderName, StatusCode};

use crate::provider::signature::Hmac;
use crate::provider::{Provider, SecretSource, Source};

/// [Attio](https://docs.attio.com/rest-api/guides/webhooks).
///
/// - Signature: `Attio-Signature: <hex>`, an HMAC-SHA256 of the body under the webhook's secret.
///   `X-Attio-Signature` has the same value.
/// - Tolerance: any age, because no time is signed.
/// - Delivery id: `Idempotency-Key`, **not** covered by the signature. Event type: none; each event in `$.events`
///   has its own.
#[doc = include_str!("facts/attio.md")]
pub fn attio(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("attio-signature"))
        .or_header(HeaderName::from_static("x-attio-signature"));
    Provider::custom("attio")
        .signature(scheme, secrets)
        .delivery_id(Source::header(HeaderName::from_static("idempotency-key")))
        .success_status(StatusCode::OK)
}
