use std::time::Duration;

use crate::provider::signature::BasicAuth;
use crate::provider::{DAY, JsonPath, Provider, SecretSource, Source};

/// [Postmark](https://postmarkapp.com/developer/webhooks/webhooks-overview).
///
/// **Nothing is signed: whoever learns the password can send any event.**
///
/// - Signature: none, but HTTP Basic authentication. The secret is `<user>:<password>`, which are
///   part of the URL that is set in Postmark.
/// - Delivery id: the SHA-256 of the body. Only bounces have an id, and one message has several
///   events. Event type: `$.RecordType`, which inbound messages lack.
/// - Redelivery: of inbound messages 10 times over about 10.5 hours, and on request; for other events
///   not confirmed; the redelivery window is 7 days. A 403 ends it.
/// - Response deadline: not confirmed; 10 seconds are assumed.
/// - Handshake: none.
/// - Body limit: 50 MiB, as inbound messages have their attachments in the body.
pub fn postmark(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("postmark")
        .signature(BasicAuth::new(), secrets)
        .delivery_id(Source::body_digest())
        .event_type(Source::json(JsonPath::member("RecordType")))
        .body_limit(50 * crate::provider::MIB)
        .response_deadline(Duration::from_secs(10))
        .redelivery_window(7 * DAY)
}
