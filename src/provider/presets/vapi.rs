use std::time::Duration;

use http::HeaderName;
use http::header::AUTHORIZATION;

use crate::provider::signature::{ByHeader, Token};
use crate::provider::{DAY, JsonPath, MIB, Provider, Retry, SecretSource, Source};

/// [Vapi](https://docs.vapi.ai/server-url/server-authentication), the messages to a server URL.
///
/// **Nothing is signed: whoever learns the secret can send any message.** Vapi can sign with an HMAC
/// instead, whose header, content and encoding are set in its dashboard: describe what was set there
/// with [`Hmac`](crate::signature::Hmac) and [`Provider::custom`].
///
/// - Signature: none. The secret is in `X-Vapi-Secret`, as it is, or else in `Authorization`, after
///   `Bearer `, which is what a bearer credential sends by default.
/// - Delivery id: none. The key is the SHA-256 of the body, which is not covered, as nothing is;
///   `$.message.timestamp` makes it unique (likely). Event type: `$.message.type`.
/// - Redelivery: none by default, and as often as the server's backoff plan says; the redelivery
///   window is 1 day.
/// - Retry: not documented. One with another body runs the handler again.
/// - Answer: any 2xx. **Vapi uses the answer to `assistant-request`, `call-endpointing-request`,
///   `campaign-predial`, `handoff-destination-request`, `knowledge-base-request`, `tool-calls`,
///   `transfer-destination-request` and `voice-request`**: have these sent to a route without the layer,
///   as a duplicate would not get it.
/// - Response deadline: 20 seconds, unless the server has another one.
/// - Handshake: none.
/// - Body limit: 4 MiB, as a body can have the transcript of a call; Vapi publishes none.
pub fn vapi(secrets: impl Into<SecretSource>) -> Provider {
    const SECRET: HeaderName = HeaderName::from_static("x-vapi-secret");
    let bearer = Token::header(AUTHORIZATION).prefix("Bearer ");
    let scheme = ByHeader::new(SECRET, Token::header(SECRET), bearer);
    Provider::custom("vapi")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .event_type(Source::json(JsonPath::member("message").then("type")))
        .body_limit(4 * MIB)
        .response_deadline(Duration::from_secs(20))
        .redelivery_window(DAY)
        .retry(Retry::unknown().id_unknown())
}
