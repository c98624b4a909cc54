use std::time::Duration;

use http::{HeaderName, StatusCode};

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, MIB, Provider, SecretSource, Source};

/// [Typeform](https://www.typeform.com/developers/webhooks/secure-your-webhooks/).
///
/// - Signature: `Typeform-Signature: sha256=<base64>`, an HMAC-SHA256 of the body.
/// - Delivery id: `$.event_id`, covered by the signature. Event type: `$.event_type`.
#[doc = include_str!("facts/typeform.md")]
pub fn typeform(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::base64(HeaderName::from_static("typeform-signature")).prefix("sha256=");
    Provider::custom("typeform")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("event_id")))
        .event_type(Source::json(JsonPath::member("event_type")))
        .event_names_like(["form_response"])
        .body_limit(4 * MIB)
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .response_deadline(Duration::from_secs(30))
}
