use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::{StandardWebhooks, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

pub(super) const ID: HeaderName = HeaderName::from_static("webhook-id");

/// Any provider that follows [Standard Webhooks](https://www.standardwebhooks.com).
///
/// - Signature: `webhook-signature`, see [`StandardWebhooks`] for its versions and
///   secrets.
/// - Tolerance: 300 seconds on both sides of `webhook-timestamp`.
/// - Delivery id: `webhook-id`, covered by the signature. Event type: `$.type`.
#[doc = include_str!("facts/standard-webhooks.md")]
pub fn standard_webhooks(secrets: impl Into<SecretSource>) -> Provider {
    standard(
        "standard-webhooks",
        StandardWebhooks::new(),
        secrets,
        Source::header(ID),
    )
    .redelivery_window(30 * DAY)
}

/// The settings that all providers that follow the specification have in common.
pub(super) fn standard(
    name: &'static str,
    scheme: StandardWebhooks,
    secrets: impl Into<SecretSource>,
    id: Source,
) -> Provider {
    Provider::custom(name)
        .signature(scheme, secrets)
        .delivery_id(id)
        .event_type(Source::json(JsonPath::member("type")))
        .tolerance(Tolerance::two_sided(Duration::from_secs(300)))
        .response_deadline(Duration::from_secs(15))
}
