use std::time::Duration;

use http::{HeaderName, StatusCode};

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, MIB, Provider, Retry, SecretSource, Source};

/// [Typeform](https://www.typeform.com/developers/webhooks/secure-your-webhooks/).
///
/// - Signature: `Typeform-Signature: sha256=<base64>`, an HMAC-SHA256 of the body.
/// - Delivery id: `$.event_id`, covered by the signature. Event type: `$.event_type`.
/// - Redelivery: every few minutes for 10 hours after 408, 423, 429 and 503, and a few times
///   after other failures; the redelivery window is 30 days.
/// - Retry: likely the same request (not confirmed).
/// - Response deadline: 30 seconds.
/// - Switched off: at once by an answer of 404 or 410.
/// - Answer: every failure gets 503, for the longer series of retries and because a 404 of the
///   handler would switch the webhook off.
/// - Body limit: 4 MiB; Typeform publishes none.
pub fn typeform(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::base64(HeaderName::from_static("typeform-signature")).prefix("sha256=");
    Provider::custom("typeform")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("event_id")))
        .event_type(Source::json(JsonPath::member("event_type")))
        .body_limit(4 * MIB)
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .response_deadline(Duration::from_secs(30))
        .retry(Retry::identical().likely())
}
