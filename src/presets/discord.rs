use std::time::Duration;

use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderName, StatusCode};

use super::PublicKey;
use crate::provider::handshake::{Handshake, HandshakeRequest};
use crate::provider::signature::{PublicKeySignature, Tolerance};
use crate::provider::{HOUR, JsonPath, Provider, SecretSource, Source};

/// [Discord](https://docs.discord.com/developers/interactions/overview): an app's interactions and
/// webhook events. Requires the feature `ed25519`.
///
/// - Signature: `X-Signature-Ed25519: <hex>`, an ed25519 signature of the time in
///   `X-Signature-Timestamp` and the body. The [`PublicKey`] is the app's key in hex.
/// - Tolerance: any age, as in Discord's SDKs; it is not confirmed whether a retry is signed again.
/// - Delivery id: `$.id` of an interaction, covered by the signature. A webhook event has no id, so the preset
///   uses the SHA-256 of its body. Event type: `$.event.type`, or the number in `$.type`.
#[doc = include_str!("facts/discord.md")]
///
/// Discord uses the answer to an interaction, and a duplicate does not get the first answer again.
pub fn discord(keys: impl Into<SecretSource<PublicKey>>) -> Provider {
    let scheme = PublicKeySignature::ed25519(HeaderName::from_static("x-signature-ed25519"))
        .hex()
        .timestamp_header(HeaderName::from_static("x-signature-timestamp"));
    let member = |name| Source::json(JsonPath::member(name));
    Provider::custom("discord")
        .signature(scheme, keys.into().cast())
        .delivery_id(member("id").or(Source::body_digest()))
        .event_type(Source::json(JsonPath::member("event").then("type")).or(member("type")))
        .event_names_like(["APPLICATION_AUTHORIZED"])
        .signed_handshake(ping)
        .tolerance(Tolerance::unlimited())
        .response_deadline(Duration::from_secs(3))
        .rejection_status(StatusCode::UNAUTHORIZED)
        .acknowledgement_status(StatusCode::NO_CONTENT)
        .redelivery_window(24 * HOUR)
}

fn ping(request: &HandshakeRequest<'_>) -> Option<Handshake> {
    let member = |name| request.json(&JsonPath::member(name));
    match (member("type")?.as_str(), member("id")) {
        ("0", None) => Some(
            Handshake::empty("PING")
                .status(StatusCode::NO_CONTENT)
                .header(CONTENT_TYPE, HeaderValue::from_static("application/json")),
        ),
        ("1", Some(_)) => Some(Handshake::json("PING", &serde_json::json!({"type": 1}))),
        _ => None,
    }
}
