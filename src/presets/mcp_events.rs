use std::time::Duration;

use http::{HeaderName, StatusCode};
use serde_json::json;

use super::standard_webhooks::{ID, standard};
use crate::provider::signature::StandardWebhooks;
use crate::provider::{DAY, Handshake, HandshakeRequest, JsonPath, Provider, SecretSource, Source};

/// [MCP Events](https://github.com/modelcontextprotocol/experimental-ext-triggers-events), a draft of the Model
/// Context Protocol in which a server sends events to the URL of a client.
///
/// **Experimental: this preset follows the draft of February 2026 with its changes up to July. It changes with the
/// draft, regardless of this crate's version.**
///
/// - Signature: `webhook-signature`, see [`StandardWebhooks`]. The client creates a secret for each subscription:
///   `whsec_` and 24 to 64 bytes in base64. With [`TenantSecrets`](crate::TenantSecrets), `X-MCP-Subscription-Id`
///   names the secret. The server's own signatures, `v1a`, are ignored.
/// - Tolerance: 300 seconds on both sides of `webhook-timestamp`.
/// - Delivery id: `X-MCP-Subscription-Id` and `webhook-id` together. `X-MCP-Subscription-Id` is **not** covered by
///   the signature. `webhook-id` is covered, but it is the id of the event, so two servers or two subscriptions
///   may send the same one. Event type: `$.name`, or `$.type` for the messages `gap` and `terminated`, which are
///   not events but reach the handler as well.
#[doc = include_str!("facts/mcp-events.md")]
pub fn mcp_events(secrets: impl Into<SecretSource>) -> Provider {
    let id =
        Source::header(HeaderName::from_static("x-mcp-subscription-id")).and(Source::header(ID));
    let member = |name| Source::json(JsonPath::member(name));
    standard("mcp-events", StandardWebhooks::new(), secrets, id)
        .event_type(member("name").or(member("type")))
        .signed_handshake(verification)
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        // The draft calls this deadline common.
        .assumed_deadline(Duration::from_secs(5))
        .redelivery_window(30 * DAY)
}

/// Answers the verification: before the first event, the server expects its challenge back.
fn verification(request: &HandshakeRequest<'_>) -> Option<Handshake> {
    let kind = request.json(&JsonPath::member("type"))?;
    let challenge = request.json(&JsonPath::member("challenge"))?;
    (kind == "verification").then(|| Handshake::json(kind, &json!({"challenge": challenge})))
}
