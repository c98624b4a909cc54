use http::{HeaderName, StatusCode};

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Jira Cloud](https://developer.atlassian.com/cloud/jira/platform/webhooks/): the webhooks that
/// an administrator registers. Webhooks of Connect and OAuth apps are signed in another way.
///
/// - Signature: `X-Hub-Signature: sha256=<hex>`, an HMAC-SHA256 of the body. Jira only sends it
///   if the webhook has a secret.
/// - Delivery id: `X-Atlassian-Webhook-Identifier`, **not** covered by the signature. It is unique
///   within one Jira site, so give each site its own endpoint name. Event type: `$.webhookEvent`.
/// - Groups: `jira:*`.
#[doc = include_str!("facts/jira.md")]
pub fn jira(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-hub-signature")).prefix("sha256=");
    Provider::custom("jira")
        .signature(scheme, secrets)
        .delivery_id(Source::header(HeaderName::from_static(
            "x-atlassian-webhook-identifier",
        )))
        .event_type(Source::json(JsonPath::member("webhookEvent")))
        .event_names_like(["jira:issue_created", "comment_created"])
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
}
