use http::{HeaderName, StatusCode};

use crate::provider::signature::{Hmac, SignedContent, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Airwallex](https://www.airwallex.com/docs/developer-tools/webhooks/listen-for-webhook-events).
///
/// - Signature: `x-signature: <hex>`, an HMAC-SHA256 of `<milliseconds><body>`, with the time in
///   `x-timestamp`, under the webhook's secret.
/// - Tolerance: 30 days on both sides, equal to the redelivery window, because a retry may carry the timestamp of the
///   first attempt: Airwallex documents neither a tolerance nor whether a retry is signed with a new timestamp.
/// - Delivery id: `$.id`, covered by the signature. Two webhooks likely get the same id, so give each route its
///   own endpoint name. Event type: `$.name`.
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
