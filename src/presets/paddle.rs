use std::time::Duration;

use http::{HeaderName, StatusCode};

use crate::provider::signature::{Hmac, SignedContent, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Paddle Billing](https://developer.paddle.com/webhooks/signature-verification).
///
/// - Signature: `Paddle-Signature: ts=<time>;h1=<hex>`, an HMAC-SHA256 of `<time>:<body>`. While a
///   secret is rotated, there are several `h1`, and one matching signature is enough.
/// - Tolerance: 30 days in the past, any time in the future. The limit is the redelivery window, because a retry may
///   carry the timestamp of the first attempt: no source says that it carries a new one. Paddle's SDK allows 5 seconds;
///   with 5 seconds, some servers refused every delivery.
/// - Delivery id: `$.event_id`, covered by the signature. Event type: `$.event_type`.
#[doc = include_str!("facts/paddle.md")]
pub fn paddle(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("paddle-signature"))
        .prefix("h1=")
        .separator(";")
        .timestamp_field("ts=")
        .signed(SignedContent::new().timestamp().text(":").body());
    Provider::custom("paddle")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("event_id")))
        .event_type(Source::json(JsonPath::member("event_type")))
        .event_names_like(["subscription.past_due"])
        .tolerance(Tolerance::past_only(30 * DAY))
        .success_status(StatusCode::OK)
        .response_deadline(Duration::from_secs(5))
}
