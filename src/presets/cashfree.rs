use http::{HeaderName, StatusCode};

use crate::provider::signature::{Hmac, SignedContent, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Cashfree](https://www.cashfree.com/docs/payments/online/webhooks/signature-verification): the
/// payment gateway, and the other webhooks that are signed in the same way.
///
/// - Signature: `x-webhook-signature: <base64>`, an HMAC-SHA256 of `<time><body>`, with the time in
///   `x-webhook-timestamp`, under the client secret. Only a time in milliseconds is accepted. If a
///   time in seconds were accepted as well, an attacker could move digits from the body into the
///   time.
/// - Tolerance: 30 days on both sides, equal to the redelivery window, because a retry may carry the timestamp of the
///   first attempt: Cashfree does not say whether it is signed with a new one. Cashfree recommends 5 minutes for
///   subscriptions.
/// - Delivery id: the SHA-256 of the body, covered by the signature. `$.data.payment.cf_payment_id`
///   would be wrong: it is the same for every status of a payment. Event type: `$.type`.
#[doc = include_str!("facts/cashfree.md")]
///
/// Webhooks of payouts version 1 and of bank account verification have their signature in the body.
/// This preset rejects them.
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
