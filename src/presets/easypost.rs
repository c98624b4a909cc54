use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::{Derivation, Hmac};
use crate::provider::{JsonPath, MIB, Provider, SecretSource, Source};

/// [EasyPost](https://docs.easypost.com/guides/webhooks-guide).
///
/// - Signature: `X-Hmac-Signature: hmac-sha256-hex=<hex>`, an HMAC-SHA256 of the body under the
///   secret, in Unicode normalization form KD.
/// - Delivery id: `$.id` (`evt_…`), covered by the signature. Event type: `$.description`.
#[doc = include_str!("facts/easypost.md")]
///
/// Two webhooks send the same event id, so give each route its own endpoint name.
pub fn easypost(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-hmac-signature"))
        .prefix("hmac-sha256-hex=")
        .derive_key(Derivation::Nfkd);
    Provider::custom("easypost")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("id")))
        .event_type(Source::json(JsonPath::member("description")))
        .event_names_like(["scan_form.created"])
        .body_limit(4 * MIB)
        .response_deadline(Duration::from_secs(7))
}
