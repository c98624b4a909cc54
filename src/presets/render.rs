use super::standard_webhooks::{ID, standard};
use crate::provider::signature::{StandardWebhooks, Tolerance};
use crate::provider::{DAY, Provider, SecretSource, Source};

/// [Render](https://render.com/docs/webhooks), which follows Standard Webhooks.
///
/// - Signature: `webhook-signature`, see [`StandardWebhooks`].
/// - Tolerance: 7 days on both sides of `webhook-timestamp`, equal to the redelivery window, because a retry may carry
///   the timestamp of the first attempt: Render does not document that it is signed with a new one. Render's example
///   allows 5 minutes. The id is signed, so a replay is still recognized as a duplicate.
/// - Delivery id: `webhook-id`, covered by the signature. Event type: `$.type`. `$.data.id` (`evt-…`)
///   names the event in Render's API.
#[doc = include_str!("facts/render.md")]
pub fn render(secrets: impl Into<SecretSource>) -> Provider {
    standard(
        "render",
        StandardWebhooks::new(),
        secrets,
        Source::header(ID),
    )
    .event_names_like(["deploy_ended"])
    .tolerance(Tolerance::two_sided(7 * DAY))
    .redelivery_window(7 * DAY)
}
