use super::standard_webhooks::{ID, standard};
use crate::provider::signature::{StandardWebhooks, Tolerance};
use crate::provider::{ASSUMED_DEADLINE, DAY, JsonPath, Provider, SecretSource, Source};

/// [BigCommerce](https://developer.bigcommerce.com/docs/integrations/webhooks/https-webhook-overview),
/// which follows Standard Webhooks.
///
/// - Signature: `webhook-signature`, see [`StandardWebhooks`]. The key is the app's client secret as text, not as
///   base64.
/// - Tolerance: 3 days on both sides of `webhook-timestamp`, equal to the redelivery window. A retry is likely
///   signed with a new timestamp, but BigCommerce does not say so.
/// - Delivery id: `webhook-id`, covered by the signature. `$.hash` would be wrong: two changes of the same kind to
///   one object within a second may share it. Event type: `$.scope`.
/// - Groups: `store/order/*`.
#[doc = include_str!("facts/bigcommerce.md")]
pub fn bigcommerce(secrets: impl Into<SecretSource>) -> Provider {
    // A secret without `whsec_` is the key itself.
    let scheme = StandardWebhooks::with_raw_secret();
    standard("bigcommerce", scheme, secrets, Source::header(ID))
        .event_type(Source::json(JsonPath::member("scope")))
        .event_names_like([
            "store/order/statusUpdated",
            "store/cart/lineItem/created",
            "store/channel/1/category_tree/updated",
            "store/channel/1/settings/checkout/updated",
        ])
        .tolerance(Tolerance::two_sided(3 * DAY))
        .assumed_deadline(ASSUMED_DEADLINE)
        .redelivery_window(3 * DAY)
}
