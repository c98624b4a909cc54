use http::{HeaderName, StatusCode};

use crate::provider::signature::{Hash, Hmac};
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Paystack](https://paystack.com/docs/payments/webhooks/).
///
/// - Signature: `x-paystack-signature: <hex>`, an HMAC-SHA512 of the body under the secret key
///   of the API.
/// - Delivery id: none. The key of a body with `$.data.id`, such as for a charge or a transfer, is its SHA-256, covered
///   by the signature. **Other bodies are not deduplicated** ([`Source::receipt`]), as they have no time either: a
///   second `customeridentification.failed` is the same text as the first, and its digest would lose it. A second
///   `charge.dispute.remind` of a dispute that has not changed is likely the same text, too, and a duplicate. Event
///   type: `$.event`.
#[doc = include_str!("facts/paystack.md")]
pub fn paystack(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-paystack-signature")).hash(Hash::Sha512);
    let of_object = Source::json(JsonPath::member("data").then("id")).and(Source::body_digest());
    Provider::custom("paystack")
        .signature(scheme, secrets)
        .delivery_id(of_object.or(Source::receipt()))
        .event_type(Source::json(JsonPath::member("event")))
        .event_names_like(["invoice.payment_failed"])
        .success_status(StatusCode::OK)
}
