use std::time::Duration;

use http::HeaderName;

use super::PublicKey;
use crate::provider::signature::{PublicKeySignature, Tolerance};
use crate::provider::{DAY, Provider, SecretSource, Source};

/// [SendGrid](https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/getting-started-event-webhook-security-features):
/// the event webhook. Requires the feature `p256`.
///
/// - Signature: `X-Twilio-Email-Event-Webhook-Signature: <base64>`, an ECDSA signature with P-256, in DER, of the
///   time in `X-Twilio-Email-Event-Webhook-Timestamp` and the body, including its last line break. The
///   [`PublicKey`] is the verification key as SendGrid shows it. SendGrid only signs if signing is switched on.
/// - Tolerance: any age, as in SendGrid's SDKs.
/// - Delivery id: the SHA-256 of the body, covered by the signature, because a body is a batch. Each event has an
///   `sg_event_id`, by which a handler can recognize events that already came in another batch. Event type: none,
///   because each event of a batch has its own type.
#[doc = include_str!("facts/sendgrid.md")]
pub fn sendgrid(keys: impl Into<SecretSource<PublicKey>>) -> Provider {
    let header = |name| HeaderName::from_static(name);
    let scheme = PublicKeySignature::ecdsa_p256(header("x-twilio-email-event-webhook-signature"))
        .timestamp_header(header("x-twilio-email-event-webhook-timestamp"));
    Provider::custom("sendgrid")
        .signature(scheme, keys.into().cast())
        .delivery_id(Source::body_digest())
        .tolerance(Tolerance::unlimited())
        .response_deadline(Duration::from_secs(10))
        .redelivery_window(3 * DAY)
}
