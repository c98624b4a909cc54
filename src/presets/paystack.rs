use http::{HeaderName, StatusCode};

use crate::provider::signature::{Hash, Hmac};
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Paystack](https://paystack.com/docs/payments/webhooks/).
///
/// - Signature: `x-paystack-signature: <hex>`, an HMAC-SHA512 of the body under the API's secret
///   key.
/// - Delivery id: none. If the body has a `$.data.id`, as for a charge or a transfer, the preset uses the SHA-256
///   of the body, which is covered by the signature. **Other bodies are not deduplicated** ([`Source::receipt`]),
///   because they contain no time either: a second `customeridentification.failed` has the same body as the first,
///   and would be lost if the digest were used. A second `charge.dispute.remind` for an unchanged dispute likely
///   has the same body as well, so it is a duplicate. Event type: `$.event`.
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
