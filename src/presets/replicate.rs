use std::time::Duration;

use super::standard_webhooks::{ID, standard};
use crate::provider::signature::StandardWebhooks;
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Replicate](https://replicate.com/docs/topics/webhooks/verify-webhook), which follows Standard
/// Webhooks.
///
/// - Signature: `webhook-signature`, see [`StandardWebhooks`]. A user or an organization has one
///   secret (`whsec_…`).
/// - Tolerance: 300 seconds on both sides of `webhook-timestamp`. Replicate's SDKs do not check the
///   time.
/// - Delivery id: `webhook-id`, covered by the signature. Replicate documents that it stays the same when a
///   webhook is sent again. `$.id` would be wrong: it is the id of the prediction, and a prediction has several
///   webhooks. Event type: `$.status`.
#[doc = include_str!("facts/replicate.md")]
pub fn replicate(secrets: impl Into<SecretSource>) -> Provider {
    standard(
        "replicate",
        StandardWebhooks::new(),
        secrets,
        Source::header(ID),
    )
    .event_type(Source::json(JsonPath::member("status")))
    .event_names_like(["succeeded"])
    .response_deadline(Duration::from_secs(5))
    .redelivery_window(DAY)
}
