use http::HeaderName;

use crate::provider::signature::Token;
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Cloudflare's notifications](https://developers.cloudflare.com/notifications/reference/webhook-payload-schema/)
/// through a generic webhook.
///
/// **Nothing is signed: anyone who learns the secret can send any notification.**
///
/// - Signature: none. `cf-webhook-auth` carries the destination's secret verbatim. If no secret was set, the
///   header is missing, and this preset rejects the request.
/// - Delivery id: the SHA-256 of the body, **not** covered, because nothing is signed. `$.alert_correlation_id`
///   would be wrong: the start and the end of an alert share it. Event type: `$.alert_type`, which some
///   notifications do not have.
/// - Action: `$.alert_event`, as in `http_alert_origin_error.ALERT_STATE_EVENT_START`.
#[doc = include_str!("facts/cloudflare-notifications.md")]
pub fn cloudflare_notifications(secrets: impl Into<SecretSource>) -> Provider {
    let member = |name| Source::json(JsonPath::member(name));
    let scheme = Token::header(HeaderName::from_static("cf-webhook-auth"));
    Provider::custom("cloudflare-notifications")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .event_type(member("alert_type"))
        .event_action(member("alert_event"))
        .event_names_like([
            "http_alert_origin_error",
            "http_alert_origin_error.ALERT_STATE_EVENT_START",
        ])
}
