use super::standard_webhooks::{ID, standard};
use crate::provider::signature::{StandardWebhooks, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Brex](https://developer.brex.com/docs/webhooks/), which signs like Standard Webhooks
/// (second-hand).
///
/// - Signature: `Webhook-Signature`, see [`StandardWebhooks`]. Brex's API lists the secrets; there are two during
///   a rotation. They are base64, with or without a leading `whsec_` (not confirmed).
/// - Tolerance: 30 days on both sides of `Webhook-Timestamp`, equal to the redelivery window, in case a retry
///   carries the timestamp of the first attempt. The id is signed, so a replay is still recognized as a duplicate.
/// - Delivery id: `Webhook-Id`, covered by the signature. Event type: `$.event_type`.
#[doc = include_str!("facts/brex.md")]
pub fn brex(secrets: impl Into<SecretSource>) -> Provider {
    standard("brex", StandardWebhooks::new(), secrets, Source::header(ID))
        .event_type(Source::json(JsonPath::member("event_type")))
        .event_names_like(["TRANSFER_PROCESSED"])
        .tolerance(Tolerance::two_sided(30 * DAY))
        .redelivery_window(30 * DAY)
}
