use std::time::Duration;

use http::{HeaderName, StatusCode};

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Shopware](https://developer.shopware.com/docs/guides/plugins/apps/lifecycle/webhook.html) apps.
///
/// - Signature: `shopware-shop-signature: <hex>`, an HMAC-SHA256 of the body under the secret that the app
///   assigned to the shop. Each shop has its own secret: see [`TenantSecrets`](crate::TenantSecrets), with
///   `$.source.shopId` as the tenant.
/// - Tolerance: any age. `$.timestamp` is covered but not checked, because the id is covered as
///   well.
/// - Delivery id: `$.source.eventId`, covered by the signature. Shopware before 6.4.11 sends none, so its requests
///   are rejected. Event type: `$.data.event`.
#[doc = include_str!("facts/shopware.md")]
pub fn shopware(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("shopware-shop-signature"));
    Provider::custom("shopware")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("source").then("eventId")))
        .event_type(Source::json(JsonPath::member("data").then("event")))
        .event_names_like(["product.written", "state_enter.order.state.paid"])
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .response_deadline(Duration::from_secs(20))
}
