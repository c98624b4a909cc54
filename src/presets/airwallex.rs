use http::{HeaderName, StatusCode};

use crate::provider::signature::{Hmac, SignedContent, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Airwallex](https://www.airwallex.com/docs/developer-tools/webhooks/listen-for-webhook-events).
///
/// - Signature: `x-signature: <hex>`, an HMAC-SHA256 of `<milliseconds><body>`, with the time in
///   `x-timestamp`, under the secret of the webhook.
/// - Tolerance: 30 days, on both sides, which is the redelivery window. Airwallex states none, nor
///   whether a retry is signed at a new time.
/// - Delivery id: `$.id`, covered by the signature. Two webhooks likely get the same one, so give each
///   route an endpoint name of its own. Event type: `$.name`.
#[doc = include_str!("facts/airwallex.md")]
pub fn airwallex(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-signature"))
        .timestamp_header(HeaderName::from_static("x-timestamp"))
        .timestamp_in_milliseconds()
        .signed(SignedContent::new().timestamp().body());
    Provider::custom("airwallex")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("id")))
        .event_type(Source::json(JsonPath::member("name")))
        .event_names_like(["payment_intent.succeeded"])
        .payload_version(Source::json(JsonPath::member("version")))
        .tolerance(Tolerance::two_sided(30 * DAY))
        .success_status(StatusCode::OK)
}
