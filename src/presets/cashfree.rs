use http::{HeaderName, StatusCode};

use crate::provider::signature::{Hmac, SignedContent, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Cashfree](https://www.cashfree.com/docs/payments/online/webhooks/signature-verification): the
/// payment gateway, and the other webhooks that are signed alike.
///
/// - Signature: `x-webhook-signature: <base64>`, an HMAC-SHA256 of `<time><body>`, with the time in
///   `x-webhook-timestamp`, under the client secret. The time is in milliseconds alone: were one in
///   seconds taken, too, digits could be moved from the body to the time.
/// - Tolerance: 30 days, on both sides, which is the redelivery window. Cashfree recommends 5 minutes
///   for subscriptions, but does not say whether a retry is signed at a new time.
/// - Delivery id: the SHA-256 of the body, covered by the signature. `$.data.payment.cf_payment_id`
///   would be wrong: each status of a payment has the same. Event type: `$.type`.
#[doc = include_str!("facts/cashfree.md")]
///
/// The webhooks of payouts in version 1, and of bank account verification, have a signature in the
/// body. This preset rejects them.
pub fn cashfree(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::base64(HeaderName::from_static("x-webhook-signature"))
        .timestamp_header(HeaderName::from_static("x-webhook-timestamp"))
        .timestamp_in_milliseconds()
        .signed(SignedContent::new().timestamp().body());
    Provider::custom("cashfree")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .event_type(Source::json(JsonPath::member("type")))
        .event_names_like(["PAYMENT_SUCCESS_WEBHOOK"])
        .payload_version(Source::header(HeaderName::from_static("x-webhook-version")))
        .tolerance(Tolerance::two_sided(30 * DAY))
        .success_status(StatusCode::OK)
}
