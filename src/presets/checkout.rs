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
/// Two workflows bring the same event id, so give each route an endpoint name of its own.
///
/// **Bodies that are not valid JSON have been seen. They are rejected with 400 each time, and so are
/// lost.**
pub fn checkout(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("cko-signature"));
    Provider::custom("checkout")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("id")))
        .event_type(Source::json(JsonPath::member("type")))
        .event_names_like(["payment_approved"])
        .response_deadline(Duration::from_secs(10))
}
