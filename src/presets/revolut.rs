use http::HeaderName;

use crate::provider::signature::{Hmac, SignedContent, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Revolut](https://developer.revolut.com/docs/guides/merchant/monitor-and-observe/webhooks/verify-the-payload-signature):
/// the Merchant, the Business (version 2) and the Crypto Ramp API.
///
/// - Signature: `Revolut-Signature: v1=<hex>`, an HMAC-SHA256 of `v1.<milliseconds>.<body>`, with the time in
///   `Revolut-Request-Timestamp`, under the whole `wsk_…` string. While a secret is rotated, there are several
///   signatures, separated by commas; one matching signature is enough.
/// - Tolerance: 24 hours on both sides, equal to the redelivery window. Revolut asks for 5 minutes.
///   A retry is likely signed with a new timestamp, but this is not confirmed.
/// - Delivery id: none is sent. The preset uses the SHA-256 of the body and the signed time, both covered by the
///   signature. The body alone would be wrong: Merchant API events contain no time, so two events of the same kind
///   for one order, such as two declined payments, may have the same body. Event type: `$.event`.
#[doc = include_str!("facts/revolut.md")]
pub fn revolut(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("revolut-signature"))
        .prefix("v1=")
        .separator(",")
        .timestamp_header(HeaderName::from_static("revolut-request-timestamp"))
        .timestamp_in_milliseconds()
        .signed(
            SignedContent::new()
                .text("v1.")
                .timestamp()
                .text(".")
                .body(),
        );
    Provider::custom("revolut")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest().and(Source::signed_time()))
        .event_type(Source::json(JsonPath::member("event")))
        .event_names_like(["ORDER_COMPLETED", "TransactionStateChanged"])
        .tolerance(Tolerance::two_sided(DAY))
        .redelivery_window(DAY)
}
