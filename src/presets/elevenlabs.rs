use http::{HeaderName, StatusCode};

use crate::provider::signature::{Hmac, Tolerance};
use crate::provider::{DAY, JsonPath, MIB, Provider, SecretSource, Source};

/// [ElevenLabs](https://elevenlabs.io/docs/eleven-api/resources/webhooks).
///
/// - Signature: `ElevenLabs-Signature: t=<time>,v0=<hex>`, an HMAC-SHA256 of `<time>.<body>`.
/// - Tolerance: 1 day in the past, any time in the future. The limit is the redelivery window,
///   because a retry may carry the timestamp of the first attempt: no source says that it carries a
///   new one. ElevenLabs's SDK allows 30 minutes, but the last retry comes after 40 minutes. A
///   replay is still recognized as a duplicate.
/// - Delivery id: none is sent. The preset uses the SHA-256 of the body, which is covered by the
///   signature; `$.event_timestamp` and `$.data.conversation_id` make each body unique. Event type:
///   `$.type`.
#[doc = include_str!("facts/elevenlabs.md")]
pub fn elevenlabs(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::timestamped(HeaderName::from_static("elevenlabs-signature")).prefix("v0=");
    Provider::custom("elevenlabs")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .event_type(Source::json(JsonPath::member("type")))
        .event_names_like(["post_call_transcription"])
        .tolerance(Tolerance::past_only(DAY))
        .success_status(StatusCode::OK)
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .body_limit(25 * MIB)
        .redelivery_window(DAY)
}
