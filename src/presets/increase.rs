use super::standard_webhooks::{ID, standard};
use crate::provider::signature::{StandardWebhooks, Tolerance};
use crate::provider::{ASSUMED_DEADLINE, DAY, JsonPath, Provider, SecretSource, Source};

/// [Increase](https://increase.com/documentation/webhooks), which follows Standard Webhooks.
///
/// - Signature: `webhook-signature`, see [`StandardWebhooks`]. As in Increase's Python SDK, the key is
///   the shared secret of the event subscription as text, and not base64.
/// - Tolerance: 30 days, on both sides, of `webhook-timestamp`, which is the redelivery window.
///   Increase's SDK has 5 minutes; that a retry is signed at a new time is likely, but not confirmed.
/// - Delivery id: `webhook-id`, covered by the signature. `$.id` (`event_…`), which is covered, too, is
///   the same for each subscription of an event. Event type: `$.category`.
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
