//! Dropbox Sign's hash of the time and the type of an event, in the body.

use std::borrow::Cow;
use std::ops::Range;

use http::HeaderMap;
use serde_json::{Value, json};

use super::multipart::{boundary, only_part};
use crate::provider::digest::sha256_hex;
use crate::provider::json_path::{JsonPath, Match, Reader};
use crate::provider::signature::digests::{Hash, hmac};
use crate::provider::signature::same_secret::is_same;
use crate::provider::signature::timestamp::{TimeUnit, to_unix_time, unix_time};
use crate::provider::signature::{
    SignError, SignatureError, SignatureScheme, Signed, SignedRequest, UnsignedRequest,
};
use crate::provider::{Secret, Secrets};

/// The name of the value with the digest that identifies an event.
pub(super) const EVENT: &str = "event";

/// The name of the value with the event type.
pub(super) const TYPE: &str = "type";

/// The part of the body that contains the event.
const PART: &str = "json";

const MEMBERS: [&str; 3] = ["event_time", "event_type", "event_hash"];

#[derive(Debug)]
pub(super) struct DropboxSign {
    reader: Reader,
}

impl DropboxSign {
    pub(super) fn new() -> Self {
        Self {
            reader: Reader::new(&MEMBERS.map(|name| JsonPath::member("event").then(name))),
        }
    }

    /// The time, the type and the hash.
    fn read(&self, json: &[u8]) -> Option<[String; 3]> {
        let found = self.reader.read(json).ok()?;
        let texts = found.into_iter().map(|found| match found {
            Match::Text(text) => Some(text),
            Match::Nothing | Match::Boolean(_) | Match::Null | Match::Other => None,
        });
        texts.collect::<Option<Vec<_>>>()?.try_into().ok()
    }
}

impl SignatureScheme for DropboxSign {
    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let json = json_of(request.headers(), request.body())
            .and_then(|range| request.body().get(range))
            .ok_or(SignatureError::MalformedBody)?;
        let [time, event_type, hash] = self.read(json).ok_or(SignatureError::MalformedBody)?;
        let signed_at = unix_time(&time, TimeUnit::Seconds).ok_or(SignatureError::MalformedBody)?;
        // Compared as text, so that only lower-case digits match.
        let matches = |secret: &Secret| {
            let mac = mac(secret, &time, &event_type);
            is_same(mac.as_bytes(), hash.as_bytes())
        };
        if secrets.iter().any(matches) {
            let signed = Signed::new().at(signed_at);
            Ok(signed
                .value(EVENT, sha256_hex(json))
                .value(TYPE, event_type))
        } else {
            Err(SignatureError::NoMatch)
        }
    }

    fn signs_body(&self) -> bool {
        false
    }

    fn signs_value(&self, name: &str) -> bool {
        name == TYPE
    }

    fn signs_time(&self) -> bool {
        true
    }

    fn description(&self) -> Cow<'static, str> {
        "HMAC-SHA256 in hex, in the body, of a time and the event type".into()
    }

    /// Signs the event in the body; its type stays.
    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        let no_event = || SignError::new("the body is not JSON with an `event`, or has none");
        let range = json_of(request.headers(), request.body()).ok_or_else(no_event)?;
        let json = request.body().get(range.clone()).ok_or_else(no_event)?;
        let mut json: Value = serde_json::from_slice(json).map_err(|_| no_event())?;
        let time = to_unix_time(request.time(), TimeUnit::Seconds).to_string();
        let members = json.as_object_mut().ok_or_else(no_event)?;
        let event = members.entry("event").or_insert_with(|| json!({}));
        let event = event.as_object_mut().ok_or_else(no_event)?;
        let event_type = event.get("event_type").and_then(Value::as_str);
        let event_type = event_type.unwrap_or("signature_request_sent").to_owned();
        event.insert("event_hash".into(), mac(secret, &time, &event_type).into());
        event.insert("event_time".into(), time.into());
        event.insert("event_type".into(), event_type.into());
        let json = json.to_string();
        let body = request.body();
        let parts = [
            body.get(..range.start),
            Some(json.as_bytes()),
            body.get(range.end..),
        ];
        let body = parts.map(Option::unwrap_or_default).concat();
        request.set_body(body);
        Ok(())
    }
}

/// The type of the event in a body.
pub(super) fn event_type(headers: &HeaderMap, body: &[u8]) -> Option<String> {
    let json = body.get(json_of(headers, body)?)?;
    let [_, event_type, _] = DropboxSign::new().read(json)?;
    Some(event_type)
}

/// The range of the JSON: in a part of the body, or the whole body.
fn json_of(headers: &HeaderMap, body: &[u8]) -> Option<Range<usize>> {
    match boundary(headers) {
        Some(boundary) => only_part(body, boundary, PART),
        None => Some(0..body.len()),
    }
}

fn mac(secret: &Secret, time: &str, event_type: &str) -> String {
    let parts = [time.as_bytes(), event_type.as_bytes()];
    hex::encode(hmac(Hash::Sha256, secret.expose(), parts))
}
