use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Dwolla](https://developers.dwolla.com/docs/balance/webhooks).
///
/// - Signature: `X-Request-Signature-SHA-256: <hex>`, an HMAC-SHA256 of the body under the secret of the webhook
///   subscription.
/// - Tolerance: any age, because no time is signed.
/// - Delivery id: `$.id`, the id of the event, covered by the signature. Two webhook subscriptions likely get the
///   same id, so give each route its own endpoint name. Event type: `$.topic`.
#[doc = include_str!("facts/dwolla.md")]
pub fn dwolla(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-request-signature-sha-256"));
    Provider::custom("dwolla")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("id")))
        .event_type(Source::json(JsonPath::member("topic")))
        .event_names_like(["transfer_created"])
        .response_deadline(Duration::from_secs(10))
}
