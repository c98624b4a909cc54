use http::HeaderName;

use crate::provider::signature::{Hash, Hmac};
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Paystack](https://paystack.com/docs/payments/webhooks/).
///
/// - Signature: `x-paystack-signature: <hex>`, an HMAC-SHA512 of the body under the secret key
///   of the API.
/// - Delivery id: none. The key is the SHA-256 of the body, which is covered by the signature.
///   Event type: `$.event`.
/// - Redelivery: every 3 minutes at first, then hourly for 72 hours (not confirmed); the
///   redelivery window is 30 days.
/// - Response deadline: not confirmed; 10 seconds are assumed.
/// - Body limit: 2 MiB; Paystack publishes none.
pub fn paystack(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-paystack-signature")).hash(Hash::Sha512);
    Provider::custom("paystack")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .event_type(Source::json(JsonPath::member("event")))
}
