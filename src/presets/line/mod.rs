use std::time::Duration;

use http::StatusCode;

use self::scheme::{EVENTS, Line};
use crate::provider::{Provider, SecretSource, Source};

mod scheme;

/// [LINE](https://developers.line.biz/en/docs/messaging-api/receiving-messages/): the Messaging
/// API.
///
/// - Signature: `X-Line-Signature: <base64>`, an HMAC-SHA256 of the body under the channel
///   secret.
/// - Delivery id: `webhookEventId` of the event, or a SHA-256 of these ids if there are several events; covered by
///   the signature. The body's digest would be wrong, because `isRedelivery` changes the body of a redelivery. The
///   id of the first event alone would be wrong as well: if another batch started with the same event, its other
///   events would be lost. If LINE delivers an event again in another batch, the event is not recognized, and the
///   handler runs again. A body without events, which the button *Verify* sends, is identified by its SHA-256.
///   Event type: none; each event has a `type`.
#[doc = include_str!("../facts/line.md")]
pub fn line(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("line")
        .signature(Line::new(), secrets)
        .delivery_id(Source::signed_value(EVENTS).or(Source::body_digest()))
        .success_status(StatusCode::OK)
        .response_deadline(Duration::from_secs(2))
}
