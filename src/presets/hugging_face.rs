use http::HeaderName;

use crate::provider::signature::Token;
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [Hugging Face](https://huggingface.co/docs/hub/webhooks): the Hub.
///
/// **Nothing is signed: whoever learns the secret can send any event.**
///
/// - Signature: none. `X-Webhook-Secret` has the secret of the webhook, as it is. The secret in the URL that the
///   documentation offers instead is not looked at, since URLs are logged.
/// - Delivery id: `Webhook-Id`, the same on every retry and on a replay. It is not covered, as nothing is. Event
///   type: `$.event.scope`, such as `repo.content`.
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
