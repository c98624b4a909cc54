use http::HeaderName;

use crate::provider::signature::Token;
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Hugging Face](https://huggingface.co/docs/hub/webhooks): the Hub.
///
/// **Nothing is signed: anyone who learns the secret can send any event.**
///
/// - Signature: none. `X-Webhook-Secret` carries the webhook's secret verbatim. The documentation also offers a
///   secret in the URL; this preset ignores it, because URLs are logged.
/// - Delivery id: `Webhook-Id`, the same on every retry and on a redelivery on request. It is not covered, because
///   nothing is signed. Event type: `$.event.scope`, such as `repo.content`.
/// - Action: `$.event.action`, as in `repo.content.update`.
#[doc = include_str!("facts/hugging-face.md")]
pub fn hugging_face(secrets: impl Into<SecretSource>) -> Provider {
    let event = |member| Source::json(JsonPath::member("event").then(member));
    Provider::custom("hugging-face")
        .signature(
            Token::header(HeaderName::from_static("x-webhook-secret")),
            secrets,
        )
        .delivery_id(Source::header(HeaderName::from_static("webhook-id")))
        .event_type(event("scope"))
        .event_action(event("action"))
        .event_names_like(["repo", "discussion.create", "repo.content.update"])
}
