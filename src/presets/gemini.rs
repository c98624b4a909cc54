use super::standard_webhooks::{ID, standard};
use crate::provider::signature::{StandardWebhooks, Tolerance};
use crate::provider::{ASSUMED_DEADLINE, DAY, Provider, SecretSource, Source};

/// [Gemini API](https://ai.google.dev/gemini-api/docs/webhooks): the static webhooks of a project, which follow
/// Standard Webhooks.
///
/// - Signature: as with [`standard_webhooks`](super::standard_webhooks()), under the webhook's signing secret.
/// - Tolerance: 24 hours on both sides, equal to the redelivery window, because a retry may carry the timestamp of the
///   first attempt: no source says that it carries a new one. Google advises 5 minutes. The id is signed, so a replay
///   is still recognized as a duplicate.
/// - Delivery id: `webhook-id`, covered by the signature. Event type: `$.type`.
#[doc = include_str!("facts/gemini.md")]
///
/// Dynamic webhooks, whose address is passed with a single API call, are signed with a JSON Web Token under one of
/// Google's keys. This preset rejects them.
pub fn gemini(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = StandardWebhooks::new();
    standard("gemini", scheme, secrets, Source::header(ID))
        .event_names_like(["batch.succeeded", "interaction.requires_action"])
        .tolerance(Tolerance::two_sided(DAY))
        .assumed_deadline(ASSUMED_DEADLINE)
        .redelivery_window(DAY)
}
