use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{Method, StatusCode};
use serde_json::json;

use crate::provider::signature::Token;
use crate::provider::{
    HOUR, Handshake, HandshakeRequest, JsonPath, Provider, Retry, SecretSource, Source,
};

/// [Okta](https://developer.okta.com/docs/concepts/event-hooks/) event hooks.
///
/// **Nothing is signed: whoever learns the value can send any event.**
///
/// - Signature: none. `Authorization` has the value that was configured, as it is: with `Bearer `
///   only if that is part of it.
/// - Delivery id: `$.eventId`. It is not covered, as nothing is. Event type: `$.eventType`, which is
///   `com.okta.event_hook` for all; those of the events are in `$.data.events[].eventType`.
/// - Redelivery: once, after no answer or an error, but not after a 4xx; the redelivery window is 24
///   hours.
/// - Retry: whether it has the same `$.eventId` is not documented. **If it has a new one, the handler
///   runs again**: Okta tells duplicates by `$.data.events[].uuid`.
/// - Answer: empty, as Okta asks. 200 and 204 are success, so every success gets 200, and every
///   failure 503, as a 4xx is final.
/// - Response deadline: 3 seconds.
/// - Handshake: a GET with `X-Okta-Verification-Challenge`, to be answered with
///   `{"verification": "<its value>"}`.
/// - Body limit: 2 MiB; Okta publishes none.
pub fn okta(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("okta")
        .signature(Token::header(AUTHORIZATION), secrets)
        .delivery_id(Source::json(JsonPath::member("eventId")))
        .event_type(Source::json(JsonPath::member("eventType")))
        .unsigned_handshake(verification)
        .response_deadline(Duration::from_secs(3))
        .redelivery_window(24 * HOUR)
        .success_status(StatusCode::OK)
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .empty_answers()
        .retry(Retry::unknown().id_unknown())
}

/// The check of a new hook, which has the token like an event.
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
