use http::{HeaderName, StatusCode};

use crate::provider::signature::{Hmac, Tolerance};
use crate::provider::{DAY, JsonPath, MIB, Provider, Retry, SecretSource, Source};

/// [ElevenLabs](https://elevenlabs.io/docs/eleven-api/resources/webhooks).
///
/// - Signature: `ElevenLabs-Signature: t=<time>,v0=<hex>`, an HMAC-SHA256 of `<time>.<body>`.
/// - Tolerance: 1 day, past only, which is the redelivery window: ElevenLabs's SDK takes 30 minutes,
///   but the last retry comes after 40, and nothing says that it carries a new time. What was
///   processed stays a duplicate.
/// - Delivery id: none. The key is the SHA-256 of the body, which is covered by the signature;
///   `$.event_timestamp` and `$.data.conversation_id` make it unique. Event type: `$.type`.
/// - Redelivery: none by default. If retries are switched on, `post_call_transcription` is delivered
///   up to 5 times again over about 40 minutes, and nothing else is. The redelivery window is 1 day.
/// - Retry: not documented. One with another body runs the handler again.
/// - Answer: ElevenLabs asks for 200 (second-hand), so every success gets it. Only 408, 429 and 5xx
///   are retried, so every failure gets 503.
/// - Response deadline: not confirmed; 10 seconds are assumed.
/// - Switched off: after 10 failures in a row, if the last success is more than 7 days ago.
/// - Body limit: 25 MiB, since a body can have the sound of a call (not confirmed).
pub fn elevenlabs(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::timestamped(HeaderName::from_static("elevenlabs-signature")).prefix("v0=");
    Provider::custom("elevenlabs")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .event_type(Source::json(JsonPath::member("type")))
        .tolerance(Tolerance::past_only(DAY))
        .success_status(StatusCode::OK)
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .body_limit(25 * MIB)
        .redelivery_window(DAY)
        .retry(Retry::unknown().id_unknown())
}
