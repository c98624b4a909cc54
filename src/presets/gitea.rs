use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Gitea](https://docs.gitea.com/usage/repository/webhooks).
///
/// - Signature: `X-Gitea-Signature: <hex>`, an HMAC-SHA256 of the body. `X-Hub-Signature-256` and
///   `X-Gogs-Signature` carry the same MAC, and are ignored. If the webhook has no secret, the
///   header is empty. Set the content type to `application/json`: for a form or a GET, Gitea signs
///   the JSON inside it, not the body.
/// - Delivery id: `X-Gitea-Delivery`, **not** covered by the signature: anyone who has captured a request can
///   replay it under another id. Each hook has its own ids. Event type: `X-Gitea-Event`; `X-Gitea-Event-Type` is
///   more specific.
/// - Action: `$.action`, as in `pull_request.opened`.
#[doc = include_str!("facts/gitea.md")]
pub fn gitea(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-gitea-signature"));
    Provider::custom("gitea")
        .signature(scheme, secrets)
        .delivery_id(Source::header(HeaderName::from_static("x-gitea-delivery")))
        .event_type(Source::header(HeaderName::from_static("x-gitea-event")))
        .event_action(Source::json(JsonPath::member("action")))
        .event_names_like(["pull_request", "pull_request.label_updated"])
        .response_deadline(Duration::from_secs(5))
        .redelivery_window(30 * DAY)
}
