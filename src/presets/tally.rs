use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Tally](https://tally.so/help/webhooks).
///
/// - Signature: `Tally-Signature: <base64>`, an HMAC-SHA256 of the body under the signing secret. If the webhook
///   has no secret, the header is missing, and this preset rejects the request.
/// - Tolerance: any age, because no time is signed.
/// - Delivery id: `$.eventId`, covered by the signature. Event type: `$.eventType`.
#[doc = include_str!("facts/tally.md")]
pub fn tally(secrets: impl Into<SecretSource>) -> Provider {
    let member = |name| Source::json(JsonPath::member(name));
    let scheme = Hmac::base64(HeaderName::from_static("tally-signature"));
    Provider::custom("tally")
        .signature(scheme, secrets)
        .delivery_id(member("eventId"))
        .event_type(member("eventType"))
        .event_names_like(["FORM_RESPONSE"])
        .response_deadline(Duration::from_secs(10))
}
