use std::time::Duration;

use http::{HeaderName, StatusCode};
use serde_json::json;

use crate::provider::signature::digests::{Hash, hmac};
use crate::provider::signature::{Hmac, SignedContent, Tolerance};
use crate::provider::{DAY, Handshake, HandshakeRequest, JsonPath, Provider, SecretSource, Source};

/// [Zoom](https://developers.zoom.us/docs/api/webhooks/).
///
/// - Signature: `x-zm-signature: v0=<hex>`, an HMAC-SHA256 of `v0:<time>:<body>` with the time in
///   `x-zm-request-timestamp`, under the app's secret token.
/// - Tolerance: 3 days in the past, any time in the future. The limit is the redelivery window,
///   because a retry may carry the timestamp of the first attempt: Zoom documents neither a
///   tolerance nor whether a retry is signed with a new timestamp.
/// - Delivery id: none is sent. The preset uses the SHA-256 of the body, which is covered by the
///   signature; `$.event_ts`, in milliseconds, makes each body unique. Event type: `$.event`.
#[doc = include_str!("facts/zoom.md")]
pub fn zoom(secrets: impl Into<SecretSource>) -> Provider {
    let scheme = Hmac::hex(HeaderName::from_static("x-zm-signature"))
        .prefix("v0=")
        .timestamp_header(HeaderName::from_static("x-zm-request-timestamp"))
        .signed(
            SignedContent::new()
                .text("v0:")
                .timestamp()
                .text(":")
                .body(),
        );
    Provider::custom("zoom")
        .signature(scheme, secrets)
        .delivery_id(Source::body_digest())
        .event_type(Source::json(JsonPath::member("event")))
        .event_names_like(["meeting.started", "meeting.participant_joined"])
        .and_event_names(&["app_deauthorized"])
        .signed_handshake(validation)
        .success_status(StatusCode::OK)
        .failure_status(StatusCode::SERVICE_UNAVAILABLE)
        .tolerance(Tolerance::past_only(3 * DAY))
        .response_deadline(Duration::from_secs(3))
        .redelivery_window(3 * DAY)
}

/// Answers the validation with Zoom's token and the token's HMAC-SHA256 under the signing secret.
fn validation(request: &HandshakeRequest<'_>) -> Option<Handshake> {
    const EVENT: &str = "endpoint.url_validation";
    if request.json(&JsonPath::member("event"))? != EVENT {
        return None;
    }
    let token = request.json(&JsonPath::member("payload").then("plainToken"))?;
    let key = request.signing_secret()?.expose();
    let encrypted = hmac(Hash::Sha256, key, [token.as_bytes()]);
    let answer = json!({"plainToken": token, "encryptedToken": hex::encode(encrypted)});
    Some(Handshake::json(EVENT, &answer))
}
