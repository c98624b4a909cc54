use super::hook0::speaker;
use crate::provider::signature::Tolerance;
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Coinbase Developer Platform](https://docs.cdp.coinbase.com/webhooks/verify-signatures): transfers,
/// onramp, wallets and on-chain activity. For Coinbase Commerce, see
/// [`coinbase_commerce`](super::coinbase_commerce()).
///
/// - Signature: `X-Hook0-Signature: t=<time>,v0=<hex>,h=<names>,v1=<hex>`. The `v1` is verified: an HMAC-SHA256 of
///   `<time>.<names>.<values>.<body>` under the secret of the subscription. The names of the covered headers are
///   separated by spaces, and their values by full stops. **A request that only has a `v0`, which covers no
///   header, is refused.**
/// - Tolerance: 30 days on both sides, equal to the redelivery window. Coinbase's sample allows 5 minutes. A retry
///   is likely signed with a new timestamp, but this is not confirmed.
/// - Delivery id: `X-Event-Id`, if the signature covers it, as in Coinbase's documentation; it must be a UUID. If
///   it is not covered, the SHA-256 of the body. Event type: `X-Event-Type`, if it is covered, or `$.eventType`.
#[doc = include_str!("facts/coinbase.md")]
pub fn coinbase(secrets: impl Into<SecretSource>) -> Provider {
    speaker("coinbase", secrets)
        .event_type(
            Source::signed_value(super::hook0::scheme::TYPE)
                .or(Source::json(JsonPath::member("eventType"))),
        )
        .event_names_like(["onramp.transaction.created"])
        .tolerance(Tolerance::two_sided(30 * DAY))
}
