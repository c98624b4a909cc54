use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::{Method, StatusCode};
use serde_json::json;

use self::scheme::X;
use crate::provider::signature::digests::{Hash, hmac};
use crate::provider::{DAY, Handshake, HandshakeRequest, JsonPath, Provider, SecretSource, Source};

mod scheme;

/// The maximum length of a challenge's token; longer tokens are not answered.
const MAX_TOKEN: usize = 512;

/// [X](https://docs.x.com/x-api/webhooks/introduction), formerly Twitter: account activity, X
/// activity and filtered streams.
///
/// - Signature: `x-twitter-webhooks-signature: sha256=<base64>`, an HMAC-SHA256 of the body under
///   the consumer secret of the app. A body that does not start with `{` is refused, even if its
///   signature is valid: see the handshake.
/// - Tolerance: any age, because no time is signed.
/// - Delivery id: none is sent. The preset uses the SHA-256 of the body, which is covered by the
///   signature; the ids and times of the events make each body unique. Event type:
///   `$.data.event_type`, which only X activity has; in account activity, the name of a member
///   shows the kind of event, such as `tweet_create_events`.
#[doc = include_str!("../facts/x.md")]
pub fn x(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("x")
        .signature(X::new(), secrets)
        .delivery_id(Source::body_digest())
        .event_type(Source::json(JsonPath::member("data").then("event_type")))
        .event_names_like(["spaces.start", "profile.update.profile_picture"])
        .unsigned_handshake(challenge)
        .success_status(StatusCode::OK)
        .response_deadline(Duration::from_secs(3))
        .redelivery_window(7 * DAY)
}

/// Answers the challenge with the HMAC of X's token. No answer may be the signature of a body that
/// the preset accepts.
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
