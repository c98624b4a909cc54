use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Forgejo](https://forgejo.org/docs/latest/user/webhooks/), which Codeberg runs.
///
/// - Signature: `X-Forgejo-Signature: <hex>`, an HMAC-SHA256 of the body. `X-Gitea-Signature`, `X-Gogs-Signature`
///   and `X-Hub-Signature-256` carry the same MAC, and are ignored. If the webhook has no secret, the header is
///   empty. Set the content type to `application/json`: for a form or a GET, Forgejo signs the JSON inside it, not
///   the body.
/// - Delivery id: `X-Forgejo-Delivery`, **not** covered by the signature: anyone who has captured a
///   request can replay it under another id. Each hook has its own ids. Event type:
///   `X-Forgejo-Event`; `X-Forgejo-Event-Type` is more specific.
/// - Action: `$.action`, as in `pull_request.opened`.
#[doc = include_str!("facts/forgejo.md")]
pub fn forgejo(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-forgejo-signature"));
    Provider::custom("forgejo")
        .signature(scheme, secrets)
        .delivery_id(Source::header(HeaderName::from_static(
            "x-forgejo-delivery",
        )))
        .event_type(Source::header(HeaderName::from_static("x-forgejo-event")))
        .event_action(Source::json(JsonPath::member("action")))
        .event_names_like(["pull_request", "pull_request.label_updated"])
        .response_deadline(Duration::from_secs(5))
        .redelivery_window(30 * DAY)
}
