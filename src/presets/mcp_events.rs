use std::time::Duration;

use http::{HeaderName, StatusCode};
use serde_json::json;

use super::standard_webhooks::{ID, standard};
use crate::provider::signature::StandardWebhooks;
use crate::provider::{DAY, Handshake, HandshakeRequest, JsonPath, Provider, SecretSource, Source};

/// [MCP Events](https://github.com/modelcontextprotocol/experimental-ext-triggers-events), a draft of the Model
/// Context Protocol in which a server sends events to the URL of a client.
///
/// **Experimental: it follows the draft of February 2026 with its changes up to July, and changes with it, whatever the
/// version of this crate.**
///
/// - Signature: `webhook-signature`, see [`StandardWebhooks`]. The client makes the secret, `whsec_` and 24 to 64
///   bytes in base64, for each subscription: with [`TenantSecrets`](crate::TenantSecrets), `X-MCP-Subscription-Id`
///   names it. The server's own signatures, `v1a`, are not looked at.
/// - Tolerance: 300 seconds, on both sides, of `webhook-timestamp`.
/// - Delivery id: `X-MCP-Subscription-Id` and `webhook-id` together. The former is **not** covered by the signature.
///   The latter is, but it is the id of the event: two servers, or two subscriptions, may have the same. Event type:
///   `$.name`, or `$.type` if it is not an event: `gap` and `terminated`, which the handler gets as well.
#[doc = include_str!("facts/mcp-events.md")]
pub fn mcp_events(secrets: impl Into<SecretSource>) -> Provider {
    let id =
        Source::header(HeaderName::from_static("x-mcp-subscription-id")).and(Source::header(ID));
    let member = |name| Source::json(JsonPath::member(name));
    standard("mcp-events", StandardWebhooks::new(), secrets, id)
        .event_type(member("name").or(member("type")))
        .signed_handshake(verification)
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        // Which the draft calls common.
        .assumed_deadline(Duration::from_secs(5))
        .redelivery_window(30 * DAY)
}

/// It wants its challenge back before the first event.
fn verification(request: &HandshakeRequest<'_>) -> Option<Handshake> {
    let kind = request.json(&JsonPath::member("type"))?;
    let challenge = request.json(&JsonPath::member("challenge"))?;
    (kind == "verification").then(|| Handshake::json(kind, &json!({"challenge": challenge})))
}
