use http::{HeaderName, StatusCode};

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, Provider, Retry, SecretSource, Source};

/// [Jira Cloud](https://developer.atlassian.com/cloud/jira/platform/webhooks/), the webhooks that an
/// administrator registers. Those of Connect and OAuth apps are not signed this way.
///
/// - Signature: `X-Hub-Signature: sha256=<hex>`, an HMAC-SHA256 of the body. Jira only sends it
///   if the webhook has a secret.
/// - Delivery id: `X-Atlassian-Webhook-Identifier`, **not** covered by the signature. It is unique
///   within one Jira site, so give each site an endpoint name of its own. Event type:
///   `$.webhookEvent`.
/// - Redelivery: automatically, up to about 30 minutes later, "subject to change"; the redelivery
///   window is 30 days.
/// - Retry: the same id; `X-Atlassian-Webhook-Retry` counts.
/// - Answer: any 2xx (not confirmed). Only 408, 409, 425, 429 and 5xx are retried, so every failure
///   gets 503.
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
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .retry(
            Retry::identical()
                .likely()
                .changes("`X-Atlassian-Webhook-Retry`"),
        )
}
