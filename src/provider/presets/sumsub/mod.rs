use std::time::Duration;

use self::scheme::Sumsub;
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

mod scheme;

/// [Sumsub](https://docs.sumsub.com/docs/webhook-manager).
///
/// - Signature: `x-payload-digest: <hex>`, an HMAC of the body under the webhook's secret, with the
///   algorithm in `x-payload-digest-alg`: `HMAC_SHA256_HEX`, which an absent header stands for,
///   `HMAC_SHA512_HEX` or, with the feature `sha1`, the older `HMAC_SHA1_HEX`; no other.
/// - Tolerance: any age, as no time is signed.
/// - Delivery id: `$.applicantId`, `$.type` and `$.createdAtMs` together, covered by the signature;
///   the SHA-256 of a body that has none of them. `$.correlationId` would be wrong: it groups
///   requests. Event type: `$.type`.
/// - Redelivery: 4 times, after 5 minutes, 1, 5 and 18 hours; the redelivery window is 3 days.
/// - Response deadline: 5 seconds.
/// - Handshake: none.
/// - Body limit: 2 MiB; Sumsub publishes none.
pub fn sumsub(secrets: impl Into<SecretSource>) -> Provider {
    let member = |name| Source::json(JsonPath::member(name));
    let event = member("applicantId")
        .and(member("type"))
        .and(member("createdAtMs"));
    Provider::custom("sumsub")
        .signature(Sumsub, secrets)
        .delivery_id(event.or(Source::body_digest()))
        .event_type(member("type"))
        .response_deadline(Duration::from_secs(5))
        .redelivery_window(3 * DAY)
}
