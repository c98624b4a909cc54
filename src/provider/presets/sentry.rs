use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{MIB, Provider, SecretSource, Source};

/// [Sentry](https://docs.sentry.io/organization/integrations/integration-platform/webhooks/),
/// the webhooks of an integration.
///
/// - Signature: `Sentry-Hook-Signature: <hex>`, an HMAC-SHA256 of the body under the client
///   secret of the integration. `Sentry-Hook-Timestamp` is not signed and is ignored.
/// - Delivery id: `Request-ID`, **not** covered by the signature. Whether a retry repeats it is
///   not documented. Event type: `Sentry-Hook-Resource`.
/// - Redelivery: not documented; the redelivery window is 30 days.
/// - Response deadline: 1 second.
/// - Switched off: after 1000 timeouts within 24 hours.
/// - Body limit: 4 MiB; Sentry publishes none.
pub fn sentry(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("sentry-hook-signature"));
    Provider::custom("sentry")
        .signature(scheme, secrets)
        .delivery_id(Source::header(HeaderName::from_static("request-id")))
        .event_type(Source::header(HeaderName::from_static(
            "sentry-hook-resource",
        )))
        .body_limit(4 * MIB)
        .response_deadline(Duration::from_secs(1))
}
