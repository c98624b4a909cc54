use std::time::Duration;

use self::scheme::Sumsub;
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

mod scheme;

/// [Sumsub](https://docs.sumsub.com/docs/webhook-manager).
///
/// - Signature: `x-payload-digest: <hex>`, an HMAC of the body under the webhook's secret, with the
///   algorithm in `x-payload-digest-alg`: `HMAC_SHA256_HEX`, which is also the default if that
///   header is absent, `HMAC_SHA512_HEX` or, with the feature `sha1`, the older `HMAC_SHA1_HEX`. No
///   other is accepted.
/// - Tolerance: any age, because no time is signed.
/// - Delivery id: none is sent. The preset uses the SHA-256 of the body, which is covered by the signature.
///   `$.applicantId`, `$.type` and `$.createdAtMs` would be wrong: they are the same for two transactions of an
///   applicant that are decided in the same millisecond. So would `$.correlationId`, which groups requests. Event
///   type: `$.type`.
#[doc = include_str!("../facts/sumsub.md")]
pub fn sumsub(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("sumsub")
        .signature(Sumsub, secrets)
        .delivery_id(Source::body_digest())
        .event_type(Source::json(JsonPath::member("type")))
        .event_names_like(["applicantReviewed"])
        .response_deadline(Duration::from_secs(10))
        .redelivery_window(30 * DAY)
}
