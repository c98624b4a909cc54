use std::time::Duration;

use http::{HeaderName, StatusCode};

use crate::provider::signature::Hmac;
use crate::provider::{Provider, Retry, SecretSource, Source};

/// [Bitbucket Cloud](https://support.atlassian.com/bitbucket-cloud/docs/manage-webhooks/).
///
/// - Signature: `X-Hub-Signature: sha256=<hex>`, an HMAC-SHA256 of the body. Bitbucket only
///   sends it if the webhook has a secret.
/// - Delivery id: `X-Request-UUID`, **not** covered by the signature. `X-Hook-UUID` would be wrong:
///   it names the webhook. Event type: `X-Event-Key`.
/// - Redelivery: up to 2 more attempts, and on request; the redelivery window is 30 days.
/// - Retry: `X-Attempt-Number` counts. Whether `X-Request-UUID` is repeated is not documented: if it
///   is not, the handler runs again.
/// - Answer: only a 5xx is retried, so every failure gets 503.
/// - Response deadline: 10 seconds.
/// - Body limit: 2 MiB; Bitbucket caps its payloads at 256 kB.
///
/// Bitbucket Data Center signs alike, but its `X-Request-Id` is new on every request. There,
/// set [`delivery_id`](Provider::delivery_id) to [`Source::body_digest`].
pub fn bitbucket(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-hub-signature")).prefix("sha256=");
    Provider::custom("bitbucket")
        .signature(scheme, secrets)
        .delivery_id(Source::header(HeaderName::from_static("x-request-uuid")))
        .event_type(Source::header(HeaderName::from_static("x-event-key")))
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .response_deadline(Duration::from_secs(10))
        .retry(Retry::unknown().id_unknown().changes("`X-Attempt-Number`"))
}
