use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::{Hmac, Tolerance};
use crate::provider::{JsonPath, MIB, Provider, SecretSource, Source};

/// [ElevenLabs](https://elevenlabs.io/docs/agents-platform/workflows/post-call-webhooks).
///
/// - Signature: `ElevenLabs-Signature: t=<time>,v0=<hex>`, an HMAC-SHA256 of `<time>.<body>`.
/// - Tolerance: 30 minutes, past only, as in ElevenLabs's SDK.
/// - Delivery id: none. The key is the SHA-256 of the body, which is covered by the signature;
///   `$.event_timestamp` and `$.data.conversation_id` make it unique. Event type: `$.type`.
/// - Redelivery: not confirmed; the redelivery window is 30 days.
/// - Response deadline: not confirmed; 10 seconds are assumed.
/// - Body limit: 25 MiB, since a body can have the sound of a call (not confirmed).
pub fn elevenlabs(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::timestamped(HeaderName::from_static("elevenlabs-signature")).prefix("v0=");
    Provider::custom("elevenlabs")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .event_type(Source::json(JsonPath::member("type")))
        .tolerance(Tolerance::past_only(Duration::from_secs(30 * 60)))
        .body_limit(25 * MIB)
}
