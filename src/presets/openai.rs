use std::time::Duration;

use super::standard_webhooks::{ID, standard};
use crate::provider::signature::StandardWebhooks;
use crate::provider::{DAY, Provider, SecretSource, Source};

/// [OpenAI](https://platform.openai.com/docs/guides/webhooks), which follows Standard Webhooks.
///
/// - Signature: `webhook-signature`, see [`StandardWebhooks`]. As in OpenAI's SDKs, a secret
///   without `whsec_` is the key itself, not base64, and a signature does not have to start with
///   `v1,`.
/// - Tolerance: 300 seconds on both sides of `webhook-timestamp`.
/// - Delivery id: `webhook-id` (`wh_…`), covered by the signature. `$.id` (`evt_…`) is a different
///   id. Event type: `$.type`.
#[doc = include_str!("facts/openai.md")]
pub fn openai(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = StandardWebhooks::openai();
    standard("openai", scheme, secrets, Source::header(ID))
        .event_names_like(["response.completed", "fine_tuning.job.succeeded"])
        .response_deadline(Duration::from_secs(5))
        .redelivery_window(30 * DAY)
}
