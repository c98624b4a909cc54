use super::standard_webhooks::{ID, standard};
use crate::provider::signature::{StandardWebhooks, Tolerance};
use crate::provider::{DAY, Provider, Retry, SecretSource, Source};

/// [Render](https://render.com/docs/webhooks), which follows Standard Webhooks.
///
/// - Signature: `webhook-signature`, see [`StandardWebhooks`].
/// - Tolerance: 7 days, on both sides, of `webhook-timestamp`, which is the redelivery window.
///   Render's example takes 5 minutes, but that a retry is signed at a new time is not documented.
///   The id is signed, so that a replay stays a duplicate.
/// - Delivery id: `webhook-id`, covered by the signature. Event type: `$.type`. `$.data.id` (`evt-…`)
///   names the event in Render's API.
/// - Redelivery: up to 8 attempts at growing intervals, the last one about 33 hours after the first
///   (second-hand); the redelivery window is 7 days.
/// - Retry: likely signed at a new time under the same id, as Standard Webhooks has it.
/// - Answer: any 2xx.
/// - Response deadline: 15 seconds.
/// - Switched off: after all attempts for a webhook have failed (second-hand).
/// - Body limit: 2 MiB.
pub fn render(secrets: impl Into<SecretSource>) -> Provider {
    standard(
        "render",
        StandardWebhooks::new(),
        secrets,
        Source::header(ID),
    )
    .tolerance(Tolerance::two_sided(7 * DAY))
    .redelivery_window(7 * DAY)
    .retry(Retry::signed_anew().likely())
}
