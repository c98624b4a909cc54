use super::standard_webhooks::{ID, standard};
use crate::provider::signature::{StandardWebhooks, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Brex](https://developer.brex.com/docs/webhooks/), which signs as Standard Webhooks has it
/// (second-hand).
///
/// - Signature: `Webhook-Signature`, see [`StandardWebhooks`]. Brex's API lists the secrets, two while one is rotated;
///   they are base64, with or without `whsec_` before it (not confirmed).
/// - Tolerance: 30 days, on both sides, of `Webhook-Timestamp`, which is the redelivery window, in
///   case a retry has the time of the first attempt. The id is signed, so a replay stays a duplicate.
/// - Delivery id: `Webhook-Id`, covered by the signature. Event type: `$.event_type`.
#[doc = include_str!("facts/brex.md")]
pub fn brex(secrets: impl Into<SecretSource>) -> Provider {
    standard("brex", StandardWebhooks::new(), secrets, Source::header(ID))
        .event_type(Source::json(JsonPath::member("event_type")))
        .event_names_like(["TRANSFER_PROCESSED"])
        .tolerance(Tolerance::two_sided(30 * DAY))
        .redelivery_window(30 * DAY)
}
