use http::{HeaderName, StatusCode};

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Veriff](https://devdocs.veriff.com/docs/webhooks-guide).
///
/// - Signature: `x-hmac-signature: <hex>`, an HMAC-SHA256 of the body under the shared secret (not
///   confirmed by any source except Veriff's guide).
/// - Delivery id: none is sent. The preset uses the SHA-256 of the body, which is covered by the signature. **An event
///   webhook (`started`, `submitted`) contains no time, so a second webhook for the same verification attempt has the
///   same body, and counts as a duplicate**; each verification attempt has its own id. Event type: `$.action` or, if it
///   is absent, `$.status`.
#[doc = include_str!("facts/veriff.md")]
pub fn veriff(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-hmac-signature"));
    Provider::custom("veriff")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .event_type(
            Source::json(JsonPath::member("action")).or(Source::json(JsonPath::member("status"))),
        )
        .event_names_like(["submitted", "resubmission_requested"])
        .success_status(StatusCode::OK)
}
