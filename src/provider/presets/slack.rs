use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::{Hmac, SignedContent, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Slack](https://docs.slack.dev/apis/events-api/): the Events API over HTTP.
///
/// - Signature: `X-Slack-Signature: v0=<hex>`, an HMAC-SHA256 of `v0:<time>:<body>`
///   with the time in `X-Slack-Request-Timestamp`, under the app's signing secret.
/// - Tolerance: 300 seconds, on both sides.
/// - Delivery id: `$.event_id`, covered by the signature. Event type: `$.event.type`
///   or, if it is absent, `$.type`.
/// - Handshake: `url_verification` is answered with its challenge.
/// - Redelivery: 3 times within some minutes, or, with delayed events, hourly for a day; the
///   redelivery window is 2 days.
/// - Response deadline: 3 seconds.
/// - Body limit: 2 MiB; Slack publishes none.
///
/// Slash commands and interactions are signed the same way but have no event id. They are
/// rejected with 400 unless [`delivery_id`](Provider::delivery_id) names another source.
pub fn slack(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-slack-signature"))
        .prefix("v0=")
        .timestamp_header(HeaderName::from_static("x-slack-request-timestamp"))
        .signed(
            SignedContent::new()
                .text("v0:")
                .timestamp()
                .text(":")
                .body(),
        );
    let member = |name| Source::json(JsonPath::member(name));
    Provider::custom("slack")
        .signature(scheme, secrets)
        .delivery_id(member("event_id"))
        .event_type(Source::json(JsonPath::member("event").then("type")).or(member("type")))
        .handshake("url_verification", member("challenge"))
        .tolerance(Tolerance::two_sided(Duration::from_secs(300)))
        .response_deadline(Duration::from_secs(3))
        .redelivery_window(2 * DAY)
}
