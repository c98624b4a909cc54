use std::time::Duration;

use super::standard_webhooks::{ID, standard};
use crate::provider::signature::{StandardWebhooks, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, Retry, SecretSource, Source};

/// [BigCommerce](https://developer.bigcommerce.com/docs/integrations/webhooks/https-webhook-overview),
/// which follows Standard Webhooks.
///
/// - Signature: `webhook-signature`, see [`StandardWebhooks`]. The key is the client secret of the app
///   as text, and not base64.
/// - Tolerance: 3 days, on both sides, of `webhook-timestamp`, which is the redelivery window. That a
///   retry is signed at a new time is likely, but BigCommerce does not say so.
/// - Delivery id: `webhook-id`, covered by the signature. `$.hash` would be wrong: two changes of one
///   kind to one object in the same second may share it. Event type: `$.scope`.
/// - Redelivery: 11 times over 48 hours after any answer but a 2xx; the redelivery window is 3 days.
/// - Retry: likely signed at a new time under the same `webhook-id`, as Standard Webhooks has it.
/// - Answer: any 2xx. The body has only the id of the object, which the handler has to ask for.
/// - Response deadline: not published; 10 seconds are assumed.
/// - Switched off: after the last retry. A domain is passed over for 3 minutes if less than 90 % of its
///   answers within 2 minutes are a success.
/// - Body limit: 2 MiB.
pub fn bigcommerce(secrets: impl Into<SecretSource>) -> Provider {
    // A secret without `whsec_` is the key itself.
    let scheme = StandardWebhooks::with_raw_secret();
    standard("bigcommerce", scheme, secrets, Source::header(ID))
        .event_type(Source::json(JsonPath::member("scope")))
        .tolerance(Tolerance::two_sided(3 * DAY))
        .response_deadline(Duration::from_secs(10))
        .redelivery_window(3 * DAY)
        .retry(Retry::signed_anew().likely())
}
