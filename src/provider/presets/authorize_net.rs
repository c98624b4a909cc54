use http::{HeaderName, StatusCode};

use crate::provider::signature::{Encoding, Hash, Hmac};
use crate::provider::{JsonPath, Provider, Retry, SecretSource, Source};

/// [Authorize.Net](https://developer.authorize.net/api/reference/features/webhooks.html).
///
/// - Signature: `X-ANET-Signature: sha512=<hex>`, in upper-case digits, an HMAC-SHA512 of the body. The
///   key is the signature key as text, although it looks like hexadecimal digits (second-hand).
/// - Delivery id: `$.notificationId`, covered by the signature. Event type: `$.eventType`.
/// - Redelivery: 10 attempts over about 9 days (not confirmed); the redelivery window is 30 days.
/// - Retry: the same notification (likely).
/// - Answer: Authorize.Net asks for 200 (second-hand), so every success gets it.
/// - Response deadline: Authorize.Net does not publish one; 10 seconds are assumed.
/// - Switched off: after the last attempt (not confirmed).
/// - Handshake: none.
/// - Body limit: 2 MiB; Authorize.Net publishes none.
pub fn authorize_net(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-anet-signature"))
        .hash(Hash::Sha512)
        .encoding(Encoding::HexOfAnyCase)
        .prefix("sha512=");
    Provider::custom("authorize-net")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("notificationId")))
        .event_type(Source::json(JsonPath::member("eventType")))
        .success_status(StatusCode::OK)
        .retry(Retry::identical().likely())
}
