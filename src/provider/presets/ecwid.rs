use std::time::Duration;

use http::{HeaderName, StatusCode};

use crate::provider::signature::{Hmac, SignedContent, Tolerance};
use crate::provider::{DAY, JsonPath, Provider, Retry, SecretSource, Source};

/// [Ecwid](https://docs.ecwid.com/build-apps/webhook-automations/setup-webhooks/how-to-process-webhooks)
/// by Lightspeed.
///
/// - Signature: `X-Ecwid-Webhook-Signature: <base64>`, an HMAC-SHA256 of `<eventCreated>.<eventId>`, both
///   from the body, under the client secret of the app.
/// - **The rest of the body is not covered by the signature: anyone who has captured one request can
///   send any event with it.** Take nothing from it; ask Ecwid for the object.
/// - Tolerance: 3 days, on both sides, of `$.eventCreated`, which is the redelivery window, as the time
///   is that of the event.
/// - Delivery id: `$.eventId`, which the signature covers. Event type: `$.eventType`, which it does not.
/// - Redelivery: 27 times over 24 hours; the redelivery window is 3 days, to leave room for late ones.
/// - Retry: the same event (likely).
/// - Answer: 200, 201, 202, 204 and 209 are success, or only 200: pages differ, so every success gets
///   200.
/// - Response deadline: 10 seconds, 3 of them to connect.
/// - Switched off: after two weeks of failures.
/// - Handshake: none.
/// - Body limit: 2 MiB; Ecwid publishes none.
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
        .tolerance(Tolerance::two_sided(3 * DAY))
        .success_status(StatusCode::OK)
        .response_deadline(Duration::from_secs(10))
        .redelivery_window(3 * DAY)
        .retry(Retry::identical().likely())
}
