use std::time::Duration;

use http::StatusCode;

use self::scheme::{AwsSns, ID};
use self::subscription::{confirmation, is_confirmation_url};
use crate::provider::signature::Tolerance;
use crate::provider::{DAY, Provider, Retry, SecretSource, Source};

mod message;
mod scheme;
mod subscription;

/// [AWS SNS](https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html) over HTTPS.
/// Feature `x509`.
///
/// - Signature: `Signature` in the body, an RSA signature with SHA-1 (`SignatureVersion` 1) or SHA-256 (2) of
///   the message, its id, subject, time, topic and type. **`MessageAttributes` and `UnsubscribeURL` are not
///   covered.** The secret is the topic's ARN, which is not secret: a message of another topic is
///   refused. Set `SignatureVersion` 2 for the topic.
/// - Keys: in the certificate at `SigningCertURL`, fetched by [`Provider::keys`](Provider::keys). Its address
///   must be `https://sns.<region>.amazonaws.com/SimpleNotificationService-<hex>.pem` with the region of the
///   topic, or that of another partition. AWS's TLS vouches for it, as it comes without its issuers. It
///   must be for SNS, and valid at the message's time.
/// - Tolerance: a day, past only, which is the redelivery window; AWS states none, and a retry keeps its
///   time.
/// - Delivery id: `$.MessageId`, covered by the signature. Event type: none.
/// - Handshake: the `SubscriptionConfirmation` of the topic, which is signed, is confirmed by a GET of its
///   `SubscribeURL`: by the client of [`Provider::keys`](Provider::keys), or as
///   [`Provider::confirm_subscription`](Provider::confirm_subscription) says. It is answered with 200
///   afterwards, and with 503 if it fails, so that SNS sends it again. Whoever has captured one can have
///   it confirmed again, for as long as SNS takes its token: by the client of the keys once a minute, by a
///   function of yours each time. An `UnsubscribeConfirmation`
///   is answered with 200, and nothing else is done.
/// - Redelivery: 3 times, 20 seconds apart, or as your delivery policy says, within an hour; the redelivery
///   window is a day, to leave room for late ones.
/// - Retry: identical (likely).
/// - Answer: 429 and 5xx are retried, and any other failure is the end of the delivery. So every failure gets
///   503.
/// - Response deadline: 15 seconds.
/// - Body limit: 2 MiB, for a message of 1 MiB.
///
/// The content type is `text/plain`, which axum's `Json` refuses: take the body as `String` or `Bytes`. With
/// raw message delivery nothing is signed, and each request is refused.
pub fn aws_sns(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("aws-sns")
        .signature(AwsSns, secrets)
        .delivery_id(Source::signed_value(ID))
        .signed_handshake(confirmation)
        .tolerance(Tolerance::past_only(DAY))
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .response_deadline(Duration::from_secs(15))
        .redelivery_window(DAY)
        .retry(Retry::identical().likely())
}
