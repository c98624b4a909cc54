use std::time::Duration;

use http::StatusCode;

use self::scheme::{AwsSns, ID};
use self::subscription::{confirmation, is_confirmation_url};
use crate::provider::signature::Tolerance;
use crate::provider::{DAY, Provider, SecretSource, Source};

mod message;
mod scheme;
mod topic;
mod subscription;

pub use topic::SnsTopic;

/// [AWS SNS](https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html) over HTTPS. Requires
/// the feature `x509`.
///
/// - Signature: `Signature` in the body, an RSA signature with SHA-1 (`SignatureVersion` 1) or SHA-256 (2) of the
///   message, its id, subject, time, topic and type. **`MessageAttributes` and `UnsubscribeURL` are not covered.**
///   A message from another [topic](SnsTopic) is refused. Set the topic's `SignatureVersion` to 2.
/// - Keys: in the certificate at `SigningCertURL`, fetched by [`Provider::keys`](Provider::keys). That address
///   must be `https://sns.<region>.amazonaws.com/SimpleNotificationService-<hex>.pem` with the topic's region, or
///   the same path under the domain of the topic's partition, such as `amazonaws.com.cn`. The certificate comes
///   without its issuers, so only AWS's TLS vouches for it. It must be issued for SNS, and valid at the message's
///   time.
/// - Tolerance: a day in the past, any time in the future. The limit is the redelivery window, because a retry keeps
///   its timestamp; AWS documents no tolerance.
/// - Delivery id: `$.MessageId`, covered by the signature. Event type: none.
#[doc = include_str!("../facts/aws-sns.md")]
///
/// The content type is `text/plain`, which axum's `Json` refuses: extract the body as `String` or `Bytes`. With
/// raw message delivery, nothing is signed, and every request is refused.
pub fn aws_sns(topics: impl Into<SecretSource<SnsTopic>>) -> Provider {
    Provider::custom("aws-sns")
        .signature(AwsSns, topics.into().cast())
        .delivery_id(Source::signed_value(ID))
        .signed_handshake(confirmation)
        .tolerance(Tolerance::past_only(DAY))
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .response_deadline(Duration::from_secs(15))
        .redelivery_window(DAY)
}
