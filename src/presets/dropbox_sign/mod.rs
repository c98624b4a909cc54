use http::StatusCode;

use self::scheme::{DropboxSign, EVENT, TYPE, event_type};
use crate::provider::signature::Tolerance;
use crate::provider::{DAY, Handshake, HandshakeRequest, MIB, Provider, SecretSource, Source};

mod multipart;
mod scheme;

/// The only answer that Dropbox Sign counts as a success.
const RECEIVED: &str = "Hello API Event Received";

/// [Dropbox Sign](https://developers.hellosign.com/docs/events/overview/), formerly HelloSign.
///
/// **The signature covers the time and the type of an event, and nothing else in the body.** Anyone who has
/// captured a request can send any event of that type within the tolerance, so fetch from Dropbox Sign whatever
/// data the handler relies on.
///
/// - Signature: `event.event_hash` in hex, an HMAC-SHA256 of `<event_time><event_type>` under the account's API
///   key. It is in the JSON of the part `json` of the body, which is `multipart/form-data`.
/// - Tolerance: 7 days in the past, any time in the future. The limit is the redelivery window, because `event_time` is
///   the time of the event.
/// - Delivery id: none is sent. The preset uses the SHA-256 of the JSON, which is **not** covered by the
///   signature. `event.event_hash` would be wrong, because all events of one type within a second share it. The
///   boundary between the parts does not affect this digest. Event type: `event.event_type`.
#[doc = include_str!("../facts/dropbox-sign.md")]
pub fn dropbox_sign(secrets: impl Into<SecretSource>) -> Provider {
    Provider::custom("dropbox-sign")
        .signature(DropboxSign::new(), secrets)
        .delivery_id(Source::signed_value(EVENT))
        .event_type(Source::signed_value(TYPE))
        .event_names_like(["signature_request_sent"])
        .signed_handshake(callback_test)
        .tolerance(Tolerance::past_only(7 * DAY))
        .body_limit(4 * MIB)
        .success_status(StatusCode::OK)
        .success_text(RECEIVED)
        .redelivery_window(7 * DAY)
}

fn callback_test(request: &HandshakeRequest<'_>) -> Option<Handshake> {
    let event_type = event_type(request.headers(), request.body())?;
    (event_type == "callback_test").then(|| Handshake::text(event_type, RECEIVED))
}
