use super::standard_webhooks::{ID, standard};
use crate::provider::signature::{StandardWebhooks, Tolerance};
use crate::provider::{ASSUMED_DEADLINE, DAY, JsonPath, Provider, SecretSource, Source};

/// [Increase](https://increase.com/documentation/webhooks), which follows Standard Webhooks.
///
/// - Signature: `webhook-signature`, see [`StandardWebhooks`]. As in Increase's Python SDK, the key is the shared
///   secret of the event subscription as text, not as base64.
/// - Tolerance: 30 days on both sides of `webhook-timestamp`, equal to the redelivery window. Increase's SDK
///   allows 5 minutes. A retry is likely signed with a new timestamp, but this is not confirmed.
/// - Delivery id: `webhook-id`, covered by the signature. `$.id` (`event_…`), which is also covered, is the same
///   for every subscription that gets the event. Event type: `$.category`.
#[doc = include_str!("facts/increase.md")]
///
/// The older header `Increase-Webhook-Signature` is not read.
pub fn increase(secrets: impl Into<SecretSource>) -> Provider {
    // A secret without `whsec_` is the key itself.
    let scheme = StandardWebhooks::with_raw_secret();
    standard("increase", scheme, secrets, Source::header(ID))
        .event_type(Source::json(JsonPath::member("category")))
        .event_names_like(["card_payment.updated"])
        .tolerance(Tolerance::two_sided(30 * DAY))
        .assumed_deadline(ASSUMED_DEADLINE)
        .redelivery_window(30 * DAY)
}
