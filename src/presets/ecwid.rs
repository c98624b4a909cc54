use std::time::Duration;

use http::{HeaderName, StatusCode};

use crate::provider::signature::{Hmac, SignedContent, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Ecwid](https://docs.ecwid.com/build-apps/webhook-automations/setup-webhooks/how-to-process-webhooks)
/// by Lightspeed.
///
/// - Signature: `X-Ecwid-Webhook-Signature: <base64>`, an HMAC-SHA256 of `<eventCreated>.<eventId>`, both from the
///   body, under the app's client secret.
/// - **The rest of the body is not covered by the signature: anyone who has captured one request
///   can send any event with it.** Do not use anything else from the body; ask Ecwid for the
///   object.
/// - Tolerance: 3 days on both sides of `$.eventCreated`, equal to the redelivery window, because
///   `$.eventCreated` is the time of the event.
/// - Delivery id: `$.eventId`, which the signature covers. Event type: `$.eventType`, which the signature does
///   **not** cover.
#[doc = include_str!("facts/ecwid.md")]
pub fn ecwid(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::base64(HeaderName::from_static("x-ecwid-webhook-signature"))
        .timestamp_json(JsonPath::member("eventCreated"))
        .signed_without_body(
            SignedContent::new()
                .json_value(JsonPath::member("eventCreated"))
                .text(".")
                .json_value(JsonPath::member("eventId")),
        );
    Provider::custom("ecwid")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("eventId")))
        .event_type(Source::json(JsonPath::member("eventType")))
        .event_names_like([
            "unfinished_order.created",
            "profile.subscriptionStatusChanged",
        ])
        .tolerance(Tolerance::two_sided(3 * DAY))
        .success_status(StatusCode::OK)
        .response_deadline(Duration::from_secs(10))
        .redelivery_window(3 * DAY)
}
