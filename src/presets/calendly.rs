use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::{Hmac, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Calendly](https://developer.calendly.com/api-docs/overview/webhooks/webhook-signatures).
///
/// - Signature: `Calendly-Webhook-Signature: t=<time>,v1=<hex>`, an HMAC-SHA256 of
///   `<time>.<body>` under the signing key.
/// - Tolerance: 3 days in the past, any time in the future. The limit is the redelivery window,
///   because a retry may carry the timestamp of the first attempt: no source says that it carries a
///   new one. Calendly's sample allows 3 minutes. A replay is still recognized as a duplicate.
/// - Delivery id: none is sent. The preset uses the SHA-256 of the body, which is covered by the
///   signature; `$.created_at` and `$.payload.uri` make each body unique. Event type: `$.event`.
#[doc = include_str!("facts/calendly.md")]
pub fn calendly(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::timestamped(HeaderName::from_static("calendly-webhook-signature"));
    Provider::custom("calendly")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .event_type(Source::json(JsonPath::member("event")))
        .event_names_like(["invitee_no_show.created"])
        .tolerance(Tolerance::past_only(3 * DAY))
        .response_deadline(Duration::from_secs(15))
        .redelivery_window(3 * DAY)
}
