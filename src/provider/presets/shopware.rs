use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, Provider, Retry, SecretSource, Source};

/// [Shopware](https://developer.shopware.com/docs/guides/plugins/apps/lifecycle/webhook.html) apps.
///
/// - Signature: `shopware-shop-signature: <hex>`, an HMAC-SHA256 of the body under the secret that the
///   app has assigned to the shop. Each shop has its own: see
///   [`TenantSecrets`](crate::TenantSecrets), with `$.source.shopId` as the tenant.
/// - Tolerance: any age. `$.timestamp` is covered, but is not checked, as the id is covered, too.
/// - Delivery id: `$.source.eventId`, covered by the signature. Shopware before 6.4.11 sends none, and
///   is rejected. Event type: `$.data.event`.
/// - Redelivery: by the shop's own message queue, for a time that is not confirmed; the redelivery
///   window is 30 days.
/// - Retry: the same `$.source.eventId`, as Shopware documents; whether `$.timestamp` and the signature
///   stay is not documented.
/// - Answer: any 2xx (likely).
/// - Response deadline: not confirmed; 10 seconds are assumed.
/// - Switched off: after several failures (not confirmed).
/// - Handshake: none. The registration of the app is a request of its own, which this preset does not
///   answer.
/// - Body limit: 2 MiB; Shopware publishes none.
pub fn shopware(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("shopware-shop-signature"));
    Provider::custom("shopware")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("source").then("eventId")))
        .event_type(Source::json(JsonPath::member("data").then("event")))
        .retry(Retry::unknown())
}
