use http::HeaderName;

use crate::provider::signature::{Encoding, Hmac, Key};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Squarespace](https://developers.squarespace.com/webhooks/verifying-notifications).
///
/// - Signature: `Squarespace-Signature: <hex>`, an HMAC-SHA256 of the body. The secret is the key in
///   hexadecimal digits.
/// - Tolerance: any age, because no time is signed.
/// - Delivery id: `$.id`, the id of the notification, covered by the signature. Event type: `$.topic`.
#[doc = include_str!("facts/squarespace.md")]
///
/// When a secret is rotated, the old one becomes invalid at once.
pub fn squarespace(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("squarespace-signature"))
        .encoding(Encoding::HexOfAnyCase)
        .key(Key::Hex);
    Provider::custom("squarespace")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("id")))
        .event_type(Source::json(JsonPath::member("topic")))
        .event_names_like(["order.create"])
        .redelivery_window(7 * DAY)
}
