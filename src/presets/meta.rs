use std::time::Duration;

use http::{HeaderName, StatusCode};

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, MIB, Provider, SecretSource, Source};

/// [Meta](https://developers.facebook.com/docs/graph-api/webhooks/getting-started): Facebook,
/// Messenger, Instagram and WhatsApp.
///
/// - Signature: `X-Hub-Signature-256: sha256=<hex>`, an HMAC-SHA256 of the body under the app
///   secret. Meta signs the text as sent, with escaped Unicode. `X-Hub-Signature`, an HMAC-SHA1, is
///   ignored.
/// - Delivery id: none is sent. The preset uses the SHA-256 of the body, which is covered by the
///   signature; the ids and times of its messages, or the time of an entry, make each body unique.
///   Event type: `$.object`.
#[doc = include_str!("facts/meta.md")]
pub fn meta(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-hub-signature-256")).prefix("sha256=");
    Provider::custom("meta")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .event_type(Source::json(JsonPath::member("object")))
        .event_names_like(["whatsapp_business_account"])
        .body_limit(4 * MIB)
        .success_status(StatusCode::OK)
        .response_deadline(Duration::from_secs(5))
}
