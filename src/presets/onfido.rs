use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Onfido](https://documentation.onfido.com/api/latest/#webhooks).
///
/// - Signature: `X-SHA2-Signature: <hex>`, an HMAC-SHA256 of the body under the webhook's token.
/// - Delivery id: none is sent. The preset uses the SHA-256 of the body, which is covered by the
///   signature. Event type: `$.payload.action`.
#[doc = include_str!("facts/onfido.md")]
///
/// **Some events contain no time. If such an event happens to an object twice, both requests have
/// the same body, and the second one is dropped.** This likely applies to
/// `watchlist_monitor.matches_updated`, because only events about something that started or ended
/// have a time. For such events, set [`Source::receipt`] as the
/// [`delivery_id`](Provider::delivery_id).
pub fn onfido(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-sha2-signature"));
    Provider::custom("onfido")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .event_type(Source::json(JsonPath::member("payload").then("action")))
        .event_names_like(["workflow_task.completed"])
        .response_deadline(Duration::from_secs(10))
}
