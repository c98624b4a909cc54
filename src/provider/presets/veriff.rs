use http::{HeaderName, StatusCode};

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, Provider, Retry, SecretSource, Source};

/// [Veriff](https://devdocs.veriff.com/docs/webhooks-guide).
///
/// - Signature: `x-hmac-signature: <hex>`, an HMAC-SHA256 of the body under the shared secret
///   (not confirmed by a source beside Veriff's guide).
/// - Delivery id: none. The key is the SHA-256 of the body, which is covered by the signature.
///   **An event webhook (`started`, `submitted`) has no time, so that a second one for the same
///   attempt is a duplicate**; each attempt has an id of its own. Event type: `$.action` or, if it
///   is absent, `$.status`.
/// - Redelivery: about hourly for up to 7 days, and on request; the redelivery window is 30 days.
/// - Retry: likely the same request (not confirmed).
/// - Response deadline: not confirmed; 10 seconds are assumed.
/// - Answer: only 200 is success, so every success gets 200.
/// - Body limit: 2 MiB; Veriff publishes none.
pub fn veriff(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-hmac-signature"));
    Provider::custom("veriff")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .event_type(
            Source::json(JsonPath::member("action")).or(Source::json(JsonPath::member("status"))),
        )
        .success_status(StatusCode::OK)
        .retry(Retry::identical().likely())
}
