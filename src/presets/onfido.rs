use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Onfido](https://documentation.onfido.com/api/latest/#webhooks).
///
/// - Signature: `X-SHA2-Signature: <hex>`, an HMAC-SHA256 of the body under the token of the
///   webhook.
/// - Delivery id: none. The key is the SHA-256 of the body, which is covered by the signature.
///   Event type: `$.payload.action`.
#[doc = include_str!("facts/onfido.md")]
///
/// **An event without a time that happens to one object twice has the same body twice, and the
/// second one is dropped**: likely `watchlist_monitor.matches_updated`, as only what has begun or
/// ended has a time. For those, set [`Source::receipt`] as the
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
