use std::time::Duration;

use http::{HeaderName, StatusCode};

use crate::provider::signature::Hmac;
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [ClickUp](https://developer.clickup.com/docs/webhooksignature).
///
/// - Signature: `X-Signature: <hex>`, an HMAC-SHA256 of the body under the secret that ClickUp returns
///   when the webhook is created.
/// - Tolerance: any age, because no time is signed.
/// - Delivery id: `$.webhook_id`, `$.event`, `$.history_items[0].id` and the SHA-256 of the body, all covered by
///   the signature. ClickUp recommends the webhook and the item. The event is part of the id because one change,
///   such as a new task, causes several events. The body is part of it because editing a comment has the same item
///   as posting it. **An event without history is not deduplicated**: a goal event or a deletion says what
///   happened to which object, but not when, so two such events can have the same body. Each such request is its
///   own delivery. Event type: `$.event`.
#[doc = include_str!("facts/clickup.md")]
pub fn clickup(secrets: impl Into<SecretSource>) -> Provider {
    #[expect(clippy::unwrap_used, reason = "a constant that parses")]
    let item: JsonPath = "$.history_items[0].id".parse().unwrap();
    let change = Source::json(JsonPath::member("webhook_id"))
        .and(Source::json(JsonPath::member("event")))
        .and(Source::json(item))
        .and(Source::body_digest());
    Provider::custom("clickup")
        .signature(Hmac::hex(HeaderName::from_static("x-signature")), secrets)
        .delivery_id(change.or(Source::receipt()))
        .event_type(Source::json(JsonPath::member("event")))
        .event_names_like(["taskCreated"])
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .response_deadline(Duration::from_secs(7))
        .redelivery_window(7 * DAY)
}
