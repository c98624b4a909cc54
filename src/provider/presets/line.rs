use http::HeaderName;

use crate::provider::signature::Hmac;
use crate::provider::{JsonPath, Provider, SecretSource, Source};

/// [LINE](https://developers.line.biz/en/docs/messaging-api/receiving-messages/), the Messaging
/// API.
///
/// - Signature: `X-Line-Signature: <base64>`, an HMAC-SHA256 of the body under the channel
///   secret.
/// - Delivery id: `$.events[0].webhookEventId`, covered by the signature: that of the first
///   event, since a batch has none. `isRedelivery` changes the body of a redelivery, so its
///   digest would be wrong. If LINE puts an event into another batch when it delivers it again,
///   it is not recognized. A body without events, which the button *Verify* sends, is keyed by
///   its SHA-256. Event type: none; each event has a `type`.
/// - Redelivery: only if it is switched on in the console (not confirmed); the redelivery
///   window is 30 days.
/// - Response deadline: not confirmed; 10 seconds are assumed.
/// - Body limit: 2 MiB; LINE publishes none.
pub fn line(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::base64(HeaderName::from_static("x-line-signature"));
    Provider::custom("line")
        .signature(scheme, secrets)
        .delivery_id(
            Source::json(JsonPath::member("events").element(0).then("webhookEventId"))
                .or(Source::body_digest()),
        )
}
