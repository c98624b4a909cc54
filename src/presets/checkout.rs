use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Checkout.com](https://www.checkout.com/docs/developer-resources/event-notifications/receive-webhooks).
///
/// - Signature: `Cko-Signature: <hex>`, an HMAC-SHA256 of the body under the signature key of
///   the webhook.
/// - Delivery id: `$.id` (`evt_…`), covered by the signature. Event type: `$.type`.
#[doc = include_str!("facts/checkout.md")]
///
/// Two workflows send the same event id, so give each route its own endpoint name.
///
/// **Checkout.com has been seen to send bodies that are not valid JSON. They are rejected with 400
/// on every attempt, so they are lost.**
pub fn checkout(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("cko-signature"));
    Provider::custom("checkout")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("id")))
        .event_type(Source::json(JsonPath::member("type")))
        .event_names_like(["payment_approved"])
        .response_deadline(Duration::from_secs(10))
}
