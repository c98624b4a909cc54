use http::HeaderName;

use crate::provider::signature::{Encoding, Hmac, Key};
use crate::provider::{DAY, JsonPath, Provider, Retry, SecretSource, Source};

/// [Squarespace](https://developers.squarespace.com/webhooks/verifying-notifications).
///
/// - Signature: `Squarespace-Signature: <hex>`, an HMAC-SHA256 of the body. The secret is the key in
///   hexadecimal digits.
/// - Tolerance: any age, as no time is signed.
/// - Delivery id: `$.id`, the id of the notification, covered by the signature. Event type: `$.topic`.
/// - Redelivery: several times over 48 hours after any answer but a 2xx; the redelivery window is 7
///   days, to leave room for late ones.
/// - Retry: the same `$.id`, and likely the same body (not confirmed).
/// - Answer: any 2xx.
/// - Response deadline: Squarespace does not publish one; 10 seconds are assumed.
/// - Switched off: after several failures, Squarespace may delete the subscription.
/// - Handshake: none.
/// - Body limit: 2 MiB; Squarespace publishes none.
///
/// A secret that is rotated is invalid at once.
pub fn squarespace(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("squarespace-signature"))
        .encoding(Encoding::HexOfAnyCase)
        .key(Key::Hex);
    Provider::custom("squarespace")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("id")))
        .event_type(Source::json(JsonPath::member("topic")))
        .redelivery_window(7 * DAY)
        .retry(Retry::identical().likely())
}
