use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Jira](https://developer.atlassian.com/server/jira/platform/webhooks/), the webhooks that an
/// administrator registers. Those of Connect and OAuth apps are not signed this way.
///
/// - Signature: `X-Hub-Signature: sha256=<hex>`, an HMAC-SHA256 of the body. Jira only sends it
///   if the webhook has a secret.
/// - Delivery id: `X-Atlassian-Webhook-Identifier`, **not** covered by the signature. It is the
///   same on every retry. Event type: `$.webhookEvent`.
/// - Redelivery: automatically, counted in `X-Atlassian-Webhook-Retry`; how long is not
///   confirmed, and the redelivery window is 30 days.
/// - Response deadline: not confirmed; 10 seconds are assumed.
/// - Body limit: 2 MiB; not confirmed.
pub fn jira(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-hub-signature")).prefix("sha256=");
    Provider::custom("jira")
        .signature(scheme, secrets)
        .delivery_id(Source::header(HeaderName::from_static(
            "x-atlassian-webhook-identifier",
        )))
        .event_type(Source::json(JsonPath::member("webhookEvent")))
}
