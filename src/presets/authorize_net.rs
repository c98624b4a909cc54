use http::{HeaderName, StatusCode};

use crate::provider::signature::{Encoding, Hash, Hmac};
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Authorize.Net](https://developer.authorize.net/api/reference/features/webhooks.html).
///
/// - Signature: `X-ANET-Signature: sha512=<hex>`, in upper-case digits, an HMAC-SHA512 of the body. The key is the
///   text of the signature key, not decoded, although it looks like hexadecimal digits (second-hand).
/// - Delivery id: `$.notificationId`, covered by the signature. Event type: `$.eventType`.
#[doc = include_str!("facts/authorize-net.md")]
pub fn authorize_net(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-anet-signature"))
        .hash(Hash::Sha512)
        .encoding(Encoding::HexOfAnyCase)
        .prefix("sha512=");
    Provider::custom("authorize-net")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("notificationId")))
        .event_type(Source::json(JsonPath::member("eventType")))
        .event_names_like([
            "net.authorize.customer.created",
            "net.authorize.customer.paymentProfile.created",
        ])
        .success_status(StatusCode::OK)
}
