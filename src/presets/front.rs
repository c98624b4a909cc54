use std::time::Duration;

use http::HeaderName;
use serde_json::json;

use crate::provider::signature::{Hmac, SignedContent, Tolerance};
use crate::provider::{DAY, Handshake, HandshakeRequest, JsonPath, Provider, SecretSource, Source};

/// [Front](https://dev.frontapp.com/docs/application-webhooks): application webhooks. Webhooks of
/// rules are signed in another way.
///
/// - Signature: `X-Front-Signature: <base64>`, an HMAC-SHA256 of `<milliseconds>:<body>` with the time in
///   `X-Front-Request-Timestamp`, under the app's *application signing key*.
/// - Tolerance: 3 days on both sides, equal to the redelivery window, because a retry may carry the timestamp of the
///   first attempt: Front does not say that it is signed with a new one. Front advises 5 minutes for channels.
/// - Delivery id: `$.type` and `$.payload.id` (`evt_…`, second-hand) together, covered by the signature. If
///   `$.payload.id` is absent, the SHA-256 of the body. Event type: `$.type`, such as `inbound_received`.
#[doc = include_str!("facts/front.md")]
pub fn front(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::base64(HeaderName::from_static("x-front-signature"))
        .timestamp_header(HeaderName::from_static("x-front-request-timestamp"))
        .timestamp_in_milliseconds()
        .signed(SignedContent::new().timestamp().text(":").body());
    let event = Source::json(JsonPath::member("type"))
        .and(Source::json(JsonPath::member("payload").then("id")));
    Provider::custom("front")
        .signature(scheme, secrets)
        .delivery_id(event.or(Source::body_digest()))
        .event_type(Source::json(JsonPath::member("type")))
        .event_names_like(["conversation_archived"])
        .signed_handshake(sync)
        .tolerance(Tolerance::two_sided(3 * DAY))
        .response_deadline(Duration::from_secs(5))
        .redelivery_window(3 * DAY)
}

/// Answers the check that Front makes when a webhook is saved.
fn sync(request: &HandshakeRequest<'_>) -> Option<Handshake> {
    let event_type = request.json(&JsonPath::member("type"))?;
    let challenge = request.header("x-front-challenge")?;
    (event_type == "sync").then(|| Handshake::json(event_type, &json!({"challenge": challenge})))
}
