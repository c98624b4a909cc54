use std::time::Duration;

use super::standard_webhooks::{ID, standard};
use crate::provider::signature::StandardWebhooks;
use crate::provider::{DAY, JsonPath, Provider, Retry, SecretSource, Source};

/// [Replicate](https://replicate.com/docs/topics/webhooks/verify-webhook), which follows Standard
/// Webhooks.
///
/// - Signature: `webhook-signature`, see [`StandardWebhooks`]. The secret (`whsec_…`) is one for the
///   user or the organization.
/// - Tolerance: 300 seconds, on both sides, of `webhook-timestamp`. Replicate's SDKs check none.
/// - Delivery id: `webhook-id`, covered by the signature and the same when a webhook is sent again,
///   as documented. `$.id` would be wrong: it is that of the prediction, which has several webhooks.
///   Event type: `$.status`.
/// - Redelivery: of the last webhook of a prediction only, several times until about a minute after
///   its end, after a 4xx, a 5xx or no answer. **A webhook of an intermediate state is never sent
///   again.** The redelivery window is 1 day.
/// - Retry: the same id; the time is that of the attempt, as documented.
/// - Response deadline: "a few seconds"; 5 are assumed.
/// - Body limit: 2 MiB; Replicate publishes none.
pub fn replicate(secrets: impl Into<SecretSource>) -> Provider {
    standard(
        "replicate",
        StandardWebhooks::new(),
        secrets,
        Source::header(ID),
    )
    .event_type(Source::json(JsonPath::member("status")))
    .response_deadline(Duration::from_secs(5))
    .redelivery_window(DAY)
    .retry(Retry::signed_anew())
}
