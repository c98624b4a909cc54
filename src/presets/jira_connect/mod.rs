use http::{HeaderName, StatusCode};

use self::scheme::{JiraConnect, LEEWAY};
use crate::provider::signature::Tolerance;
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

mod scheme;

/// [Jira](https://developer.atlassian.com/cloud/jira/platform/understanding-jwt-for-connect-apps/):
/// webhooks of Connect apps. Webhooks that an administrator registers are signed in another way.
///
/// **The body is not signed: anyone who has captured a request can send any body to the same URL
/// until an hour after the token expires.**
///
/// - Signature: `Authorization: JWT <token>`, a token with HS256 under the installation's shared
///   secret. Its claim `qsh` is a SHA-256 of the method, the path and the sorted query; a token
///   with any other `qsh`, such as `context-qsh`, is refused.
/// - Tolerance: the token is accepted until an hour after its `exp`, which is required, and within an hour on both
///   sides of its `iat`. Jira delivers again up to half an hour later, and does not say that a retry has a new token.
///   If you see that your retries have new tokens, a shorter [`tolerance`](Provider::tolerance) is safer.
/// - Delivery id: `X-Atlassian-Webhook-Identifier`, **not** covered by the signature; according to
///   a third party that quotes Atlassian, it is the same on every retry. Event type:
///   `$.webhookEvent`.
/// - Groups: `jira:*`.
#[doc = include_str!("../facts/jira-connect.md")]
///
/// The signed path is relative to the app's base URL. The preset compares it with the path that the
/// server receives.
pub fn jira_connect(secrets: impl Into<SecretSource>) -> Provider {
    let id = HeaderName::from_static("x-atlassian-webhook-identifier");
    Provider::custom("jira-connect")
        .signature(JiraConnect, secrets)
        .delivery_id(Source::header(id))
        .event_type(Source::json(JsonPath::member("webhookEvent")))
        .event_names_like(["jira:issue_created", "comment_created"])
        .tolerance(Tolerance::two_sided(LEEWAY))
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .body_limit(25 * crate::provider::MIB)
        .redelivery_window(3 * DAY)
}
