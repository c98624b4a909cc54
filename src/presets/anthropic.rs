use super::standard_webhooks::standard;
use crate::provider::signature::{StandardWebhooks, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Anthropic](https://platform.claude.com/docs/en/managed-agents/webhooks): the webhooks of Claude
/// Managed Agents, which follow Standard Webhooks.
///
/// - Signature: `webhook-signature`, see [`StandardWebhooks`]. A new secret replaces the old one at
///   once, so configure both while you change it.
/// - Tolerance: 30 days on both sides of `webhook-timestamp`, equal to the redelivery window, in case a retry
///   carries the timestamp of the first attempt. Anthropic's SDKs allow 5 minutes. The id is signed, so a replay
///   is still recognized as a duplicate.
/// - Delivery id: `$.id`, covered by the signature. Anthropic's SDKs name it for deduplication, and a retry keeps
///   it. Two endpoints likely get the same id, so give each route its own endpoint name. Event type:
///   `$.data.type`; `$.type` is always `event`.
#[doc = include_str!("facts/anthropic.md")]
pub fn anthropic(secrets: impl Into<SecretSource>) -> Provider {
    let id = Source::json(JsonPath::member("id"));
    standard("anthropic", StandardWebhooks::new(), secrets, id)
        .event_type(Source::json(JsonPath::member("data").then("type")))
        .event_names_like(["session.status_idled"])
        .tolerance(Tolerance::two_sided(30 * DAY))
        .redelivery_window(30 * DAY)
}
