use std::time::Duration;

use http::{HeaderName, StatusCode};

use crate::provider::signature::{Hmac, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Shippo](https://docs.goshippo.com/tracking/webhook-security): webhooks with HMAC, which Shippo switches on for
/// an account on request.
///
/// - Signature: `Shippo-Auth-Signature: t=<time>,v1=<hex>`, an HMAC-SHA256 of `<time>.<body>`.
/// - Tolerance: 7 days in the past, any time in the future. The limit is the redelivery window, because a retry may
///   carry the timestamp of the first attempt: no source says that it carries a new one.
/// - Delivery id: none is sent. The preset uses the SHA-256 of the body, which is covered by the signature; the
///   times in `$.data` likely make each body unique. Event type: `$.event`.
#[doc = include_str!("facts/shippo.md")]
pub fn shippo(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::timestamped(HeaderName::from_static("shippo-auth-signature"));
    Provider::custom("shippo")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .event_type(Source::json(JsonPath::member("event")))
        .event_names_like(["track_updated"])
        .tolerance(Tolerance::past_only(7 * DAY))
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .response_deadline(Duration::from_secs(3))
        .redelivery_window(7 * DAY)
}
