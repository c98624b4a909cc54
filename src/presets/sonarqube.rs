use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{Provider, SecretSource, Source};

/// [SonarQube](https://docs.sonarsource.com/sonarqube-server/project-administration/webhooks/), Server and Cloud.
///
/// - Signature: `X-Sonar-Webhook-HMAC-SHA256: <hex>`, an HMAC-SHA256 of the body under the webhook's secret. If
///   the webhook has no secret, the header is missing, and this preset rejects the request.
/// - Tolerance: any age, because no time is signed.
/// - Delivery id: the SHA-256 of the body, covered by the signature. `$.taskId` would be wrong: the webhook for a
///   changed issue does not have its own. Event type: none.
#[doc = include_str!("facts/sonarqube.md")]
pub fn sonarqube(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-sonar-webhook-hmac-sha256"));
    Provider::custom("sonarqube")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .response_deadline(Duration::from_secs(10))
}
