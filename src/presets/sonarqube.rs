use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{Provider, SecretSource, Source};

/// [SonarQube](https://docs.sonarsource.com/sonarqube-server/project-administration/webhooks/), the server and the cloud.
///
/// - Signature: `X-Sonar-Webhook-HMAC-SHA256: <hex>`, an HMAC-SHA256 of the body under the secret of the webhook. It is missing
///   if the webhook has no secret, which this preset rejects.
/// - Tolerance: any age, as no time is signed.
/// - Delivery id: the SHA-256 of the body, covered by the signature. `$.taskId` would be wrong: what a change of an issue sends
///   has none of its own. Event type: none.
#[doc = include_str!("facts/sonarqube.md")]
pub fn sonarqube(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-sonar-webhook-hmac-sha256"));
    Provider::custom("sonarqube")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .response_deadline(Duration::from_secs(10))
}
