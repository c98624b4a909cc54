use std::time::Duration;

use http::HeaderName;

use super::{DAY, Provider};
use crate::signature::{HmacSha256, Tolerance};
use crate::source::Source;
use crate::tenant::Keys;

impl Provider {
    /// [Awardee](https://api-docs.awardee.dev/webhooks/signing).
    ///
    /// - Signature: `X-Awardee-Signature: t=<time>,v1=<hex>`, an HMAC-SHA256 of
    ///   `<time>.<body>` under the whole `whsec_…` string.
    /// - Tolerance: 300 seconds, to both sides; Awardee asks for none.
    /// - Delivery id: `X-Awardee-Delivery`, **not** covered by the signature. Event type:
    ///   `X-Awardee-Event`.
    /// - Redelivery: for about 24 hours by itself, and at somebody's request; the
    ///   redelivery window is 30 days.
    /// - Response deadline: 30 seconds.
    /// - Body limit: 2 MiB; Awardee publishes none.
    pub fn awardee(keys: impl Into<Keys>) -> Self {
        let scheme = HmacSha256::timestamped(HeaderName::from_static("x-awardee-signature"));
        Self::custom("awardee")
            .signature(scheme, keys)
            .delivery_id(Source::header(HeaderName::from_static(
                "x-awardee-delivery",
            )))
            .event_type(Source::header(HeaderName::from_static("x-awardee-event")))
            .tolerance(Tolerance::two_sided(Duration::from_secs(300)))
            .response_deadline(Duration::from_secs(30))
            .redelivery_window(30 * DAY)
    }
}
