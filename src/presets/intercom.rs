use std::time::Duration;

use http::{HeaderName, StatusCode};
use serde_json::Value;

use crate::provider::signature::{Hash, Hmac};
use crate::provider::{Handshake, HandshakeRequest, JsonPath, Provider, SecretSource, Source};

/// [Intercom](https://developers.intercom.com/docs/webhooks/setting-up-webhooks). Requires the
/// feature `sha1`.
///
/// - Signature: `X-Hub-Signature: sha1=<hex>`, an HMAC-SHA1 of the body under the app's client
///   secret.
/// - Delivery id: `$.id` (`notif_…`), covered by the signature. The body's digest would be wrong, because
///   `$.delivery_attempts` changes the body from one attempt to the next. Event type: `$.topic`. The test of a
///   topic carries the topic's name and `"id": null`. It is answered as a ping and does not reach the handler.
#[doc = include_str!("facts/intercom.md")]
pub fn intercom(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-hub-signature"))
        .hash(Hash::Sha1)
        .prefix("sha1=");
    Provider::custom("intercom")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("id")))
        .event_type(Source::json(JsonPath::member("topic")))
        .event_names_like(["conversation_part.redacted"])
        .answer_head_requests()
        .signed_handshake(ping)
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .response_deadline(Duration::from_secs(5))
}

/// A test has the topic `ping`, or, if it comes from a topic's test button, the name of that topic
/// and no id.
fn ping(request: &HandshakeRequest<'_>) -> Option<Handshake> {
    let topic = request.json(&JsonPath::member("topic"))?;
    let has_id = request.json(&JsonPath::member("id")).is_some();
    let is_test = topic == "ping" || !has_id && has_null_id(request.body());
    is_test.then(|| Handshake::empty("ping"))
}

fn has_null_id(body: &[u8]) -> bool {
    let body = serde_json::from_slice::<Value>(body);
    body.is_ok_and(|body| body.get("id").is_some_and(Value::is_null))
}
