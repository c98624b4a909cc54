use std::time::Duration;

use http::HeaderName;

use self::scheme::GitLab;
use crate::provider::signature::Tolerance;
use crate::provider::{DAY, JsonPath, MIB, Provider, SecretSource, Source};

mod scheme;

/// [GitLab](https://docs.gitlab.com/user/project/integrations/webhooks/).
///
/// **With a secret token, nothing is signed: whoever learns it can send any event.** With a signing
/// token, the id and the body are.
///
/// - Signature: with a signing token (`whsec_…`), `webhook-signature` of
///   [Standard Webhooks](crate::provider::signature::StandardWebhooks). With any other secret,
///   `X-Gitlab-Token`, which has the secret as it is. If GitLab sends both, the token
///   counts only while none of the secrets is a signing token. With secrets of both kinds, a request that has the
///   token alone is taken, so remove the secret token once GitLab signs.
/// - Tolerance: 300 seconds, on both sides, of `webhook-timestamp`; none for a secret token.
/// - Delivery id: `webhook-id` or, where it is absent, `Idempotency-Key`. Both have the
///   same value, on every attempt. Only `webhook-id` is covered, and only with a signing token.
///   `X-Gitlab-Webhook-UUID` would be wrong, as it is new for each request, and
///   `X-Gitlab-Event-UUID`, as all hooks of an event share it. Old versions send no key, and are
///   refused. Event type: `X-Gitlab-Event`.
/// - Action: `$.object_attributes.action`, as in `Merge Request Hook.open`; pushes and pipelines have none.
#[doc = include_str!("../facts/gitlab.md")]
pub fn gitlab(secrets: impl Into<SecretSource>) -> Provider {
    let header = |name| Source::header(HeaderName::from_static(name));
    Provider::custom("gitlab")
        .signature(GitLab::new(), secrets)
        .delivery_id(header("webhook-id").or(header("idempotency-key")))
        .event_type(header("x-gitlab-event"))
        .event_action(Source::json(
            JsonPath::member("object_attributes").then("action"),
        ))
        .event_names_like(["Merge Request Hook", "Merge Request Hook.open"])
        .tolerance(Tolerance::two_sided(Duration::from_secs(300)))
        .body_limit(25 * MIB)
        .response_deadline(Duration::from_secs(10))
        .redelivery_window(30 * DAY)
}
