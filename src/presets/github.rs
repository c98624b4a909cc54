use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{DAY, JsonPath, MIB, Provider, SecretSource, Source};

/// [GitHub](https://docs.github.com/webhooks).
///
/// - Signature: `X-Hub-Signature-256: sha256=<hex>`, an HMAC-SHA256 of the body.
///   GitHub only sends it if the hook has a secret.
/// - Delivery id: `X-GitHub-Delivery`, **not** covered by the signature. An event has the same id
///   at every hook, so give each route its own endpoint name. Event type: `X-GitHub-Event`,
///   qualified by `$.action`, as in `pull_request.opened`.
/// - GitHub Apps: an event that reaches two Apps at one URL has one id and two bodies, so the second request would
///   be a duplicate of the first. Give each App its own endpoint, or include the installation in the id:
///   `.delivery_id(Source::header(HeaderName::from_static("x-github-delivery")).and(Source::json("$.installation.id".parse()?)))`.
/// - Content type: set it to `application/json`. GitHub's default is a form, which axum's `Json` cannot read, and
///   from which the layer cannot read the action.
/// - Ping: a new hook sends an event `ping` first. `Events` and `only` ignore it.
#[doc = include_str!("facts/github.md")]
pub fn github(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-hub-signature-256")).prefix("sha256=");
    Provider::custom("github")
        .signature(scheme, secrets)
        .delivery_id(Source::header(HeaderName::from_static("x-github-delivery")))
        .event_type(Source::header(HeaderName::from_static("x-github-event")))
        .event_action(Source::json(JsonPath::member("action")))
        .event_names_like(["pull_request", "pull_request.review_requested"])
        .and_event_names(&["repository_dispatch.*"])
        .body_limit(25 * MIB)
        .response_deadline(Duration::from_secs(10))
        .redelivery_window(3 * DAY)
}
