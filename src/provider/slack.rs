use std::time::Duration;

use http::HeaderName;

use super::{DAY, Provider};
use crate::json_path::JsonPath;
use crate::signature::{HmacSha256, Tolerance};
use crate::source::Source;
use crate::tenant::Keys;

impl Provider {
    /// [Slack](https://docs.slack.dev/apis/events-api/): the Events API over HTTP.
    ///
    /// - Signature: `X-Slack-Signature: v0=<hex>`, an HMAC-SHA256 of `v0:<time>:<body>`
    ///   with the time in `X-Slack-Request-Timestamp`, under the app's signing secret.
    /// - Tolerance: 300 seconds, to both sides.
    /// - Delivery id: `$.event_id`, covered by the signature. Event type: `$.event.type`
    ///   or, where there is none, `$.type`.
    /// - Handshake: `url_verification` is answered with its challenge.
    /// - Redelivery: 3 times within some minutes, or, where delayed events are switched on,
    ///   hourly for a day; the redelivery window is 2 days.
    /// - Response deadline: 3 seconds.
    /// - Body limit: 2 MiB; Slack publishes none.
    ///
    /// Slash commands and interactions are signed the same way but have no event id: they
    /// are a 400 unless [`delivery_id`](Self::delivery_id) says what to take in its place.
    #[expect(clippy::expect_used, reason = "the template is a constant, and tested")]
    pub fn slack(keys: impl Into<Keys>) -> Self {
        let scheme = HmacSha256::hex(HeaderName::from_static("x-slack-signature"))
            .prefix("v0=")
            .timestamp_header(HeaderName::from_static("x-slack-request-timestamp"))
            .signed("v0:{timestamp}:{body}")
            .expect("it names the timestamp and the body");
        let member = |name| Source::json(JsonPath::member(name));
        Self::custom("slack")
            .signature(scheme, keys)
            .delivery_id(member("event_id"))
            .event_type(Source::json(JsonPath::member("event").then("type")).or(member("type")))
            .handshake("url_verification", member("challenge"))
            .tolerance(Tolerance::two_sided(Duration::from_secs(300)))
            .response_deadline(Duration::from_secs(3))
            .redelivery_window(2 * DAY)
    }
}
