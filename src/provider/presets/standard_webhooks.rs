use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::{StandardWebhooks, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, Retry, SecretSource, Source};

pub(super) const ID: HeaderName = HeaderName::from_static("webhook-id");

/// Any provider that follows [Standard Webhooks](https://www.standardwebhooks.com).
///
/// - Signature: `webhook-signature`, see [`StandardWebhooks`] for its versions and
///   secrets.
/// - Tolerance: 300 seconds, on both sides, of `webhook-timestamp`.
/// - Delivery id: `webhook-id`, covered by the signature. Event type: `$.type`.
/// - Redelivery: up to the provider, so the redelivery window is 30 days. The specification counts
///   a 2xx as success, and anything else as a failure.
/// - Retry: signed at a new time under the same `webhook-id`, as the specification demands. For a
///   provider that keeps the time of the first attempt, set
///   [`tolerance`](Provider::tolerance) to the time over which it retries: the id is signed, so that
///   a replay stays a duplicate.
/// - Response deadline: 15 seconds, the least that the specification asks of senders.
/// - Switched off: by an answer of 410, which the layer never gives.
/// - Body limit: 2 MiB.
pub fn standard_webhooks(secrets: impl Into<SecretSource>) -> Provider {
    standard(
        "standard-webhooks",
        StandardWebhooks::new(),
        secrets,
        Source::header(ID),
    )
    .redelivery_window(30 * DAY)
    .retry(Retry::signed_anew())
}

/// What all providers that follow the specification have in common.
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
