use std::time::Duration;

use http::{HeaderName, StatusCode};

use crate::provider::signature::Hmac;
use crate::provider::{Provider, SecretSource, Source};

/// [Bitbucket Cloud](https://support.atlassian.com/bitbucket-cloud/docs/manage-webhooks/).
///
/// - Signature: `X-Hub-Signature: sha256=<hex>`, an HMAC-SHA256 of the body. Bitbucket only
///   sends it if the webhook has a secret.
/// - Delivery id: `X-Request-UUID`, **not** covered by the signature. `X-Hook-UUID` would be wrong:
///   it names the webhook. Event type: `X-Event-Key`.
/// - Groups: `repo:*`.
#[doc = include_str!("facts/bitbucket.md")]
///
/// Bitbucket Data Center signs in the same way, but its `X-Request-Id` is new on every request. For
/// Data Center, set [`delivery_id`](Provider::delivery_id) to [`Source::body_digest`].
pub fn bitbucket(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-hub-signature")).prefix("sha256=");
    Provider::custom("bitbucket")
        .signature(scheme, secrets)
        .delivery_id(Source::header(HeaderName::from_static("x-request-uuid")))
        .event_type(Source::header(HeaderName::from_static("x-event-key")))
        .event_names_like(["pullrequest:comment_created", "pr:reviewer:needs_work"])
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .response_deadline(Duration::from_secs(10))
}
