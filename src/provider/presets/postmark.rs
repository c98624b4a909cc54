use std::time::Duration;

use http::{HeaderName, StatusCode};

use crate::provider::signature::BasicAuth;
use crate::provider::{DAY, JsonPath, Provider, Retry, SecretSource, Source};

/// [Postmark](https://postmarkapp.com/developer/webhooks/webhooks-overview).
///
/// **Nothing is signed: whoever learns the password can send any event.**
///
/// - Signature: none, but HTTP Basic authentication. The secret is `<user>:<password>`, which are
///   part of the URL that is set in Postmark.
/// - Delivery id: `X-PM-Webhook-Trace-Id`, or the SHA-256 of the body of a request without it. Only
///   bounces have an id in the body, and one message has several events. Event type: `$.RecordType`,
///   which inbound messages lack.
/// - Redelivery: of inbound messages 10 times over about 10.5 hours, and on request, after any answer
///   but 200 and 403; of other events with growing intervals after a 5xx, 408, 429 or no answer, and
///   **not after any other 4xx**. The redelivery window is 7 days.
/// - Retry: the same trace id and body; `X-PM-Retries-Remaining` counts.
/// - Answer: inbound messages want 200, so every success gets it. Every failure gets 503, as a 4xx of
///   the handler would be the end of the event. **So is the 401 for a wrong password**: change it here
///   before it is changed in Postmark.
/// - Response deadline: not confirmed; 10 seconds are assumed.
/// - Handshake: none.
/// - Body limit: 50 MiB, as inbound messages have their attachments in the body.
pub fn postmark(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("postmark")
        .signature(BasicAuth::new(), secrets)
        .delivery_id(
            Source::header(HeaderName::from_static("x-pm-webhook-trace-id"))
                .or(Source::body_digest()),
        )
        .event_type(Source::json(JsonPath::member("RecordType")))
        .body_limit(50 * crate::provider::MIB)
        .success_status(StatusCode::OK)
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .response_deadline(Duration::from_secs(10))
        .redelivery_window(7 * DAY)
        .retry(Retry::identical().changes("`X-PM-Retries-Remaining`"))
}
