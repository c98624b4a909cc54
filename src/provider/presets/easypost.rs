use http::HeaderName;

use crate::provider::signature::{Hmac, Key};
use crate::provider::{JsonPath, MIB, Provider, SecretSource, Source};

/// [EasyPost](https://docs.easypost.com/guides/webhooks-guide).
///
/// - Signature: `X-Hmac-Signature: hmac-sha256-hex=<hex>`, an HMAC-SHA256 of the body under the
///   secret in the Unicode normalization form KD.
/// - Delivery id: `$.id` (`evt_…`), covered by the signature. Event type: `$.description`.
/// - Redelivery: not confirmed; the redelivery window is 30 days.
/// - Response deadline: not confirmed; 10 seconds are assumed.
/// - Body limit: 4 MiB; EasyPost publishes none.
pub fn easypost(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-hmac-signature"))
        .prefix("hmac-sha256-hex=")
        .key(Key::Nfkd);
    Provider::custom("easypost")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("id")))
        .event_type(Source::json(JsonPath::member("description")))
        .body_limit(4 * MIB)
}
