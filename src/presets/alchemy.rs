use std::time::Duration;

use http::{HeaderName, StatusCode};

use crate::provider::signature::Hmac;
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Alchemy](https://www.alchemy.com/docs/reference/notify-api-faq) webhooks, formerly Alchemy
/// Notify.
///
/// - Signature: `X-Alchemy-Signature: <hex>`, an HMAC-SHA256 of the body under the webhook's signing key; each
///   webhook has its own. The account's auth token is not that key.
/// - Tolerance: any age, because no time is signed.
/// - Delivery id: `$.id` (`whevt_…`), covered by the signature. `$.webhookId` is the same for all events
///   of a webhook. Event type: `$.type`.
#[doc = include_str!("facts/alchemy.md")]
///
/// The old V1 webhooks have no `$.id`, so this preset rejects them.
pub fn alchemy(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-alchemy-signature"));
    Provider::custom("alchemy")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("id")))
        .event_type(Source::json(JsonPath::member("type")))
        .event_names_like(["ADDRESS_ACTIVITY"])
        .success_status(StatusCode::OK)
        .response_deadline(Duration::from_secs(5))
        .redelivery_window(7 * DAY)
}
