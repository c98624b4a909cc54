use std::time::Duration;

use http::HeaderName;

use super::{DAY, Provider};
use crate::json_path::JsonPath;
use crate::signature::{HmacSha256, Tolerance};
use crate::source::Source;
use crate::tenant::Keys;

impl Provider {
    /// [Stripe](https://docs.stripe.com/webhooks): snapshot and thin (v2) events.
    ///
    /// - Signature: `Stripe-Signature: t=<time>,v1=<hex>`, an HMAC-SHA256 of
    ///   `<time>.<body>` under the whole `whsec_…` string. Any of several `v1` may
    ///   match; other schemes are passed over.
    /// - Tolerance: 300 seconds, past only, as in Stripe's SDKs.
    /// - Delivery id: `$.id`, covered by the signature. Event type: `$.type`.
    /// - Redelivery: for up to 3 days by itself, for up to 30 days with the CLI, so the
    ///   redelivery window is 30 days.
    /// - Response deadline: Stripe does not publish one; 10 seconds are assumed.
    /// - Body limit: 2 MiB.
    ///
    /// An endpoint for live and one for test events have different secrets, and so do
    /// two endpoints of one account.
    pub fn stripe(keys: impl Into<Keys>) -> Self {
        let scheme = HmacSha256::timestamped(HeaderName::from_static("stripe-signature"));
        Self::custom("stripe")
            .signature(scheme, keys)
            .delivery_id(Source::json(JsonPath::member("id")))
            .event_type(Source::json(JsonPath::member("type")))
            .tolerance(Tolerance::past_only(Duration::from_secs(300)))
            .redelivery_window(30 * DAY)
    }
}
