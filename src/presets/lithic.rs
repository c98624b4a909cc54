use super::standard_webhooks::{ID, standard};
use crate::provider::signature::{StandardWebhooks, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Lithic](https://docs.lithic.com/docs/events-api): the webhooks of its Events API, which are
/// sent through Svix (second-hand).
///
/// - Signature: `webhook-signature`, see [`StandardWebhooks`]. Each event subscription has its own
///   secret.
/// - Tolerance: 30 days on both sides of `webhook-timestamp`, equal to the redelivery window, in case a retry
///   carries the timestamp of the first attempt. Lithic's SDKs allow 5 minutes. The id is signed, so a replay is
///   still recognized as a duplicate.
/// - Delivery id: `webhook-id`, covered by the signature. Event type: `$.event_type`, which all
///   events have in Lithic's SDKs.
#[doc = include_str!("facts/lithic.md")]
pub fn lithic(secrets: impl Into<SecretSource>) -> Provider {
    standard(
        "lithic",
        StandardWebhooks::new(),
        secrets,
        Source::header(ID),
    )
    .event_type(Source::json(JsonPath::member("event_type")))
    .event_names_like(["card_transaction.updated"])
    .tolerance(Tolerance::two_sided(30 * DAY))
    .redelivery_window(30 * DAY)
}
