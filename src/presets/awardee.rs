use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::{Hmac, Tolerance};
use crate::provider::{DAY, Provider, SecretSource, Source};

/// [Awardee](https://api-docs.awardee.dev/webhooks/signing).
///
/// - Signature: `X-Awardee-Signature: t=<time>,v1=<hex>`, an HMAC-SHA256 of
///   `<time>.<body>` under the whole `whsec_…` string.
/// - Tolerance: 300 seconds on both sides; Awardee does not ask for a tolerance.
/// - Delivery id: `X-Awardee-Delivery`, **not** covered by the signature. Event type:
///   `X-Awardee-Event`.
#[doc = include_str!("facts/awardee.md")]
pub fn awardee(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::timestamped(HeaderName::from_static("x-awardee-signature"));
    Provider::custom("awardee")
        .signature(scheme, secrets)
        .delivery_id(Source::header(HeaderName::from_static(
            "x-awardee-delivery",
        )))
        .event_type(Source::header(HeaderName::from_static("x-awardee-event")))
        .event_names_like(["qr_code.scanned"])
        .tolerance(Tolerance::two_sided(Duration::from_secs(300)))
        .response_deadline(Duration::from_secs(30))
        .redelivery_window(30 * DAY)
}
