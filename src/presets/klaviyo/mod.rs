use std::time::Duration;

use http::StatusCode;

use self::scheme::Klaviyo;
use crate::provider::{DAY, MIB, Provider, SecretSource, Source};

mod scheme;

/// [Klaviyo](https://developers.klaviyo.com/en/docs/working_with_system_webhooks): system webhooks.
/// The webhooks of a flow are not signed.
///
/// - Signature: `Klaviyo-Signature: <hex>`, an HMAC-SHA256 of the body followed by the text of
///   `Klaviyo-Timestamp`, under the webhook's secret key.
/// - Tolerance: any age. `Klaviyo-Timestamp` is a date such as `Thu, 04 Jan 2024 18:05:25 GMT`; it is covered by
///   the signature but not read, and Klaviyo documents no limit. Nothing separates it from the body, so anyone who
///   has captured a request can move text from one to the other, but the body is then no longer JSON.
/// - Delivery id: none, because a body is a batch of up to 1000 events. The preset uses the SHA-256 of the body,
///   which is covered by the signature. Each event has a `$.data[].external_id`, by which a handler can recognize
///   events that already came in another batch. Event type: none, because each event of a batch has its own
///   `topic`.
#[doc = include_str!("../facts/klaviyo.md")]
pub fn klaviyo(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("klaviyo")
        .signature(Klaviyo::new(), secrets)
        .delivery_id(Source::body_digest())
        .body_limit(10 * MIB)
        .redelivery_window(7 * DAY)
        .success_status(StatusCode::OK)
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .response_deadline(Duration::from_secs(5))
}
