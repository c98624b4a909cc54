use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::{Hmac, SignedContent, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Slack](https://docs.slack.dev/apis/events-api/): the Events API over HTTP.
///
/// - Signature: `X-Slack-Signature: v0=<hex>`, an HMAC-SHA256 of `v0:<time>:<body>`
///   with the time in `X-Slack-Request-Timestamp`, under the app's signing secret.
/// - Tolerance: 2 days on both sides, equal to the redelivery window, because a retry may carry the
///   timestamp of the first attempt: Slack does not say that it is signed with a new one. Slack
///   advises 5 minutes.
/// - Delivery id: `$.event_id`, covered by the signature. `app_rate_limited` has none; it is
///   identified by `$.type`, `$.api_app_id`, `$.team_id` and `$.minute_rate_limited` together.
///   Event type: `$.event.type` or, if it is absent, `$.type`.
#[doc = include_str!("facts/slack.md")]
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
    let rate_limit = member("type")
        .and(member("api_app_id"))
        .and(member("team_id"))
        .and(member("minute_rate_limited"));
    Provider::custom("slack")
        .signature(scheme, secrets)
        .delivery_id(member("event_id").or(rate_limit))
        .event_type(Source::json(JsonPath::member("event").then("type")).or(member("type")))
        .event_names_like(["message", "app_mention"])
        .handshake("url_verification", member("challenge"))
        .tolerance(Tolerance::two_sided(2 * DAY))
        .response_deadline(Duration::from_secs(3))
        .redelivery_window(2 * DAY)
}
