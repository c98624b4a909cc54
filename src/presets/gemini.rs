use super::standard_webhooks::{ID, standard};
use crate::provider::signature::{StandardWebhooks, Tolerance};
use crate::provider::{ASSUMED_DEADLINE, DAY, Provider, SecretSource, Source};

/// [Gemini API](https://ai.google.dev/gemini-api/docs/webhooks), the static webhooks of a project. They follow Standard
/// Webhooks.
///
/// - Signature: as with [`standard_webhooks`](super::standard_webhooks()), under the signing secret of the webhook.
/// - Tolerance: 24 hours, on both sides, which is the redelivery window. Google advises 5 minutes, but nothing says that a
///   retry has a new time. The id is signed, so a replay stays a duplicate.
/// - Delivery id: `webhook-id`, covered by the signature. Event type: `$.type`.
#[doc = include_str!("facts/gemini.md")]
///
/// The dynamic webhooks, whose address is given with one call, are signed by a JSON Web Token with a key of Google. This preset
/// rejects them.
pub fn gemini(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = StandardWebhooks::new();
    standard("gemini", scheme, secrets, Source::header(ID))
        .event_names_like(["batch.succeeded", "interaction.requires_action"])
        .tolerance(Tolerance::two_sided(DAY))
        .assumed_deadline(ASSUMED_DEADLINE)
        .redelivery_window(DAY)
}
