use super::standard_webhooks::standard;
use crate::provider::signature::{StandardWebhooks, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Anthropic](https://platform.claude.com/docs/en/managed-agents/webhooks), the webhooks of Claude
/// Managed Agents, which follow Standard Webhooks.
///
/// - Signature: `webhook-signature`, see [`StandardWebhooks`]. A new secret replaces the old one at
///   once: give both while you change it.
/// - Tolerance: 30 days, on both sides, of `webhook-timestamp`, which is the redelivery window,
///   in case a retry has the time of the first attempt. Anthropic's SDKs take 5 minutes. The id is signed, so a replay
///   stays a duplicate.
/// - Delivery id: `$.id`, covered by the signature, which Anthropic's SDKs name for this, and which a
///   retry keeps. Two endpoints likely get the same one, so give each route an endpoint name of its
///   own. Event type: `$.data.type`; `$.type` is always `event`.
#[doc = include_str!("facts/anthropic.md")]
pub fn anthropic(secrets: impl Into<SecretSource>) -> Provider {
    let id = Source::json(JsonPath::member("id"));
    standard("anthropic", StandardWebhooks::new(), secrets, id)
        .event_type(Source::json(JsonPath::member("data").then("type")))
        .event_names_like(["session.status_idled"])
        .tolerance(Tolerance::two_sided(30 * DAY))
        .redelivery_window(30 * DAY)
}
