use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::{Encoding, Hmac, SignedContent, Tolerance};
use crate::provider::{DAY, JsonPath, MIB, Provider, SecretSource, Source};

/// [Retell AI](https://docs.retellai.com/features/webhook).
///
/// - Signature: `x-retell-signature: v=<milliseconds>,d=<hex>`, an HMAC-SHA256 of the body followed by the
///   milliseconds, under the API key that has the webhook badge.
/// - Tolerance: 1 day on both sides, equal to the redelivery window, because a retry may carry the timestamp of the
///   first attempt: no source says that it carries a new one. Retell's SDKs allow 5 minutes.
/// - Delivery id: none is sent. The preset uses the SHA-256 of the body and the signed time, both covered by the
///   signature, because Retell documents nothing that makes a body unique. `$.call.call_id` would be wrong: a call
///   has several events, some of them more than once. Event type: `$.event`.
#[doc = include_str!("facts/retell.md")]
///
/// The webhook for inbound calls expects a specific answer, which a duplicate would not get.
pub fn retell(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-retell-signature"))
        .encoding(Encoding::HexOfAnyCase)
        .prefix("d=")
        .separator(",")
        .timestamp_field("v=")
        .timestamp_in_milliseconds()
        .signed(SignedContent::new().body().timestamp());
    Provider::custom("retell")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest().and(Source::signed_time()))
        .event_type(Source::json(JsonPath::member("event")))
        .event_names_like(["call_ended"])
        .tolerance(Tolerance::two_sided(DAY))
        .body_limit(4 * MIB)
        .response_deadline(Duration::from_secs(10))
        .redelivery_window(DAY)
}
