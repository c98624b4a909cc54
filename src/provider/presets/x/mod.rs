use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::{Method, StatusCode};
use serde_json::json;

use self::scheme::X;
use crate::provider::signature::keyed::{Hash, hmac};
use crate::provider::{
    DAY, Handshake, HandshakeRequest, JsonPath, Provider, Retry, SecretSource, Source,
};

mod scheme;

/// The longest token of a challenge that is answered.
const MAX_TOKEN: usize = 512;

/// [X](https://docs.x.com/x-api/webhooks/introduction), once Twitter: account activity, X activity
/// and filtered streams.
///
/// - Signature: `x-twitter-webhooks-signature: sha256=<base64>`, an HMAC-SHA256 of the body under
///   the consumer secret of the app. A body that does not begin with `{` is refused, whatever its
///   signature: see the handshake.
/// - Tolerance: any age, as no time is signed.
/// - Delivery id: none. The key is the SHA-256 of the body, which is covered by the signature; the
///   ids and times of what happened make it unique. Event type: `$.data.event_type`, which only X
///   activity has; account activity names its events by a member, such as `tweet_create_events`.
/// - Handshake: the GET with `crc_token` is answered with `{"response_token": "sha256=<base64>"}`, an
///   HMAC-SHA256 of the token under the first of the secrets. X repeats it about every hour or day.
///   **Such an answer is also the signature of a body with the text of the token, and anyone can ask
///   for it.** So a token of other characters than letters, digits, spaces and `-_.+/=` is not
///   answered, and a body that can be made of these is not accepted.
/// - Redelivery: with the enterprise tier up to 3 times within 5 minutes, and on request for 5 days;
///   others are not confirmed. The redelivery window is 7 days.
/// - Retry: not documented; if its body differs, the handler runs again.
/// - Answer: X takes 200 alone, so every success gets it.
/// - Response deadline: 3 seconds; a newer page has 10.
/// - Switched off: the webhook becomes invalid if the handshake fails.
/// - Body limit: 2 MiB; X publishes none.
pub fn x(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("x")
        .signature(X::new(), secrets)
        .delivery_id(Source::body_digest())
        .event_type(Source::json(JsonPath::member("data").then("event_type")))
        .unsigned_handshake(challenge)
        .success_status(StatusCode::OK)
        .response_deadline(Duration::from_secs(3))
        .redelivery_window(7 * DAY)
        .retry(Retry::unknown().id_unknown())
}

/// It wants the HMAC of its token. No answer may be the signature of a body that is accepted.
fn challenge(request: &HandshakeRequest<'_>) -> Option<Handshake> {
    let token = request.query_value("crc_token")?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b" -_.+/=".contains(&byte);
    let is_token = !token.is_empty() && token.len() <= MAX_TOKEN && token.bytes().all(is_plain);
    if request.method() != Method::GET || !is_token {
        return None;
    }
    let key = request.secrets()?.iter().next()?.expose();
    let mac = BASE64.encode(hmac(Hash::Sha256, key, [token.as_bytes()]));
    let answer = json!({"response_token": format!("sha256={mac}")});
    Some(Handshake::json("crc_token", &answer))
}
