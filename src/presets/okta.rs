use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{Method, StatusCode};
use serde_json::json;

use crate::provider::signature::Token;
use crate::provider::{
    HOUR, Handshake, HandshakeRequest, JsonPath, Provider, SecretSource, Source,
};

/// [Okta](https://developer.okta.com/docs/concepts/event-hooks/) event hooks.
///
/// **Nothing is signed: anyone who learns the value can send any event.**
///
/// - Signature: none. `Authorization` carries the configured value verbatim, with `Bearer ` only if
///   that is part of the value.
/// - Delivery id: `$.eventId`. It is not covered, because nothing is signed. Event type:
///   `$.eventType`, which is always `com.okta.event_hook`; the types of the events are in
///   `$.data.events[].eventType`.
#[doc = include_str!("facts/okta.md")]
pub fn okta(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("okta")
        .signature(Token::header(AUTHORIZATION), secrets)
        .delivery_id(Source::json(JsonPath::member("eventId")))
        .event_type(Source::json(JsonPath::member("eventType")))
        .event_names_like(["com.okta.event_hook"])
        .payload_version(Source::json(JsonPath::member("eventTypeVersion")))
        .unsigned_handshake(verification)
        .response_deadline(Duration::from_secs(3))
        .redelivery_window(24 * HOUR)
        .success_status(StatusCode::OK)
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .empty_answers()
}

/// Answers the check of a new hook, which carries the token, as an event does.
fn verification(request: &HandshakeRequest<'_>) -> Option<Handshake> {
    let challenge = request.header("x-okta-verification-challenge")?;
    let is_authentic = request.method() == Method::GET && request.signing_secret().is_some();
    is_authentic.then(|| {
        Handshake::json(
            "verification-challenge",
            &json!({"verification": challenge}),
        )
    })
}
