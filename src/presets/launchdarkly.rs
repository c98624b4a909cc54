use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [LaunchDarkly](https://launchdarkly.com/docs/home/infrastructure/webhooks).
///
/// - Signature: `X-LD-Signature: <hex>`, an HMAC-SHA256 of the body. LaunchDarkly only sends it if
///   the webhook has a secret.
/// - Delivery id: `$._id`, the id of the audit log entry, covered by the signature. An entry has the same id in every
///   webhook that delivers it, so give each route its own endpoint name. Event type: `$.kind`, such as `flag`;
///   `$.accesses[].action` names the action.
#[doc = include_str!("facts/launchdarkly.md")]
pub fn launchdarkly(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-ld-signature"));
    Provider::custom("launchdarkly")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("_id")))
        .event_type(Source::json(JsonPath::member("kind")))
        .event_names_like(["flag", "custom-role"])
        .redelivery_window(DAY)
}
