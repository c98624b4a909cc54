use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, MIB, Provider, SecretSource, Source};

/// [Sentry](https://docs.sentry.io/organization/integrations/integration-platform/webhooks/): the
/// webhooks of an integration.
///
/// - Signature: `Sentry-Hook-Signature: <hex>`, an HMAC-SHA256 of the body under the integration's
///   client secret. `Sentry-Hook-Timestamp` is not signed and is ignored.
/// - Delivery id: `Request-ID`, **not** covered by the signature. According to Sentry's source code, each attempt
///   has a new one, so **a retry runs the handler again**. The body's digest would be wrong: an issue that is
///   resolved, reopened and resolved again may send the same body twice. Event type: `Sentry-Hook-Resource`.
/// - Action: `$.action`, as in `issue.created`.
#[doc = include_str!("facts/sentry.md")]
pub fn sentry(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("sentry-hook-signature"));
    Provider::custom("sentry")
        .signature(scheme, secrets)
        .delivery_id(Source::header(HeaderName::from_static("request-id")))
        .event_type(Source::header(HeaderName::from_static(
            "sentry-hook-resource",
        )))
        .event_action(Source::json(JsonPath::member("action")))
        .event_names_like([
            "issue",
            "event_alert",
            "issue.resolved",
            "seer.root_cause_started",
        ])
        .body_limit(4 * MIB)
        .response_deadline(Duration::from_secs(1))
}
