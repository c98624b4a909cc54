use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [BTCPay Server](https://docs.btcpayserver.org/Development/Webhooks/).
///
/// - Signature: `BTCPay-Sig: sha256=<hex>`, an HMAC-SHA256 of the body under the webhook's secret.
/// - Tolerance: any age, because no time is signed.
/// - Delivery id: `$.originalDeliveryId`, the id of the first delivery, which each redelivery carries, or else
///   `$.deliveryId`; both are covered by the signature. `$.deliveryId` alone would be wrong: it is new on each
///   redelivery. Event type: `$.type`.
#[doc = include_str!("facts/btcpay.md")]
pub fn btcpay(secrets: impl Into<SecretSource>) -> Provider {
    let member = |name| Source::json(JsonPath::member(name));
    let scheme = Hmac::hex(HeaderName::from_static("btcpay-sig")).prefix("sha256=");
    Provider::custom("btcpay")
        .signature(scheme, secrets)
        .delivery_id(member("originalDeliveryId").or(member("deliveryId")))
        .event_type(member("type"))
        .event_names_like(["InvoiceSettled"])
}
