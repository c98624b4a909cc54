use std::time::Duration;

use http::HeaderName;

use self::scheme::GitLab;
use crate::provider::signature::Tolerance;
use crate::provider::{DAY, JsonPath, MIB, Provider, SecretSource, Source};

mod scheme;

/// [GitLab](https://docs.gitlab.com/user/project/integrations/webhooks/).
///
/// **With a secret token, nothing is signed: anyone who learns it can send any event.** With a
/// signing token, the id and the body are signed.
///
/// - Signature: with a signing token (`whsec_…`), `webhook-signature` of [Standard
///   Webhooks](crate::provider::signature::StandardWebhooks). With any other secret, `X-Gitlab-Token`, which
///   carries the secret verbatim. If GitLab sends both headers, the token is accepted only while no configured
///   secret is a signing token. If secrets of both kinds are configured, a request that only has the token is
///   still accepted, so remove the secret token once GitLab signs.
/// - Tolerance: 300 seconds on both sides of `webhook-timestamp`; with a secret token, no time is
///   checked.
/// - Delivery id: `webhook-id` or, if it is absent, `Idempotency-Key`. Both have the same value on
///   every attempt. Only `webhook-id` is covered, and only with a signing token.
///   `X-Gitlab-Webhook-UUID` would be wrong because it is new for each request, and
///   `X-Gitlab-Event-UUID` because all hooks that an event triggers share it. Old GitLab versions
///   send neither header, so their requests are refused. Event type: `X-Gitlab-Event`.
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
