use std::time::Duration;

use http::HeaderName;

use crate::provider::signature::{Hash, Hmac};
use crate::provider::{
    Handshake, HandshakeRequest, JsonPath, Provider, Retry, SecretSource, Source,
};

/// [Intercom](https://developers.intercom.com/docs/webhooks/setting-up-webhooks). Feature `sha1`.
///
/// - Signature: `X-Hub-Signature: sha1=<hex>`, an HMAC-SHA1 of the body under the client secret
///   of the app.
/// - Delivery id: `$.id` (`notif_…`), covered by the signature. `$.delivery_attempts` changes
///   the body from one attempt to the next, so the body's digest would be wrong. Event type:
///   `$.topic`.
/// - Redelivery: once, after a minute (not confirmed); the redelivery window is 30 days.
/// - Response deadline: 5 seconds. Answers within half a second are preferred.
/// - Retry: the same `$.id`, with another `$.delivery_attempts`.
/// - Handshake: a HEAD request when the webhook is set up (not confirmed), and the signed test with
///   the topic `ping`, whose `$.id` is `null`, are answered with 200.
/// - Switched off: paused for 15 minutes after more than 1000 errors in a row within 15
///   minutes, and suspended after a week of errors. 429 throttles; 410 switches the webhook off
///   (not confirmed).
/// - Body limit: 2 MiB; Intercom publishes none.
pub fn intercom(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-hub-signature"))
        .hash(Hash::Sha1)
        .prefix("sha1=");
    Provider::custom("intercom")
        .signature(scheme, secrets)
        .delivery_id(Source::json(JsonPath::member("id")))
        .event_type(Source::json(JsonPath::member("topic")))
        .answer_head_requests()
        .signed_handshake(ping)
        .response_deadline(Duration::from_secs(5))
        .retry(Retry::signed_anew().changes("`$.delivery_attempts`"))
}

fn ping(request: &HandshakeRequest<'_>) -> Option<Handshake> {
    let topic = request.json(&JsonPath::member("topic"))?;
    (topic == "ping").then(|| Handshake::empty(topic))
}
