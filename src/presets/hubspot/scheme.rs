//! HubSpot's three signature versions.

use std::borrow::Cow;
use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::request::Parts;
use http::{HeaderMap, HeaderName, Method};
use serde_json::Value;

use crate::provider::signature::digests::{Hash, hmac, sha256};
use crate::provider::signature::same_secret::is_same;
use crate::provider::signature::timestamp::{TimeUnit, to_unix_time, unix_time};
use crate::provider::signature::{
    SignError, SignatureError, SignatureScheme, Signed, SignedRequest, UnsignedRequest, only_value,
};
use crate::provider::{Secret, Secrets};

/// The name of the value with the digest that identifies a batch.
pub(super) const EVENTS: &str = "events";

/// The member of an event that counts the attempts.
const ATTEMPTS: &str = "attemptNumber";

const V3: HeaderName = HeaderName::from_static("x-hubspot-signature-v3");
const TIME: HeaderName = HeaderName::from_static("x-hubspot-request-timestamp");
const OLDER: HeaderName = HeaderName::from_static("x-hubspot-signature");
const VERSION: HeaderName = HeaderName::from_static("x-hubspot-signature-version");

#[derive(Debug)]
pub(super) struct HubSpot;

/// The values in the headers of a request.
enum Head<'a> {
    V3 {
        signature: Vec<u8>,
        timestamp: &'a str,
        signed_at: SystemTime,
    },
    V2(Vec<u8>),
    V1(Vec<u8>),
}

impl<'a> Head<'a> {
    fn read(headers: &'a HeaderMap) -> Result<Self, SignatureError> {
        if headers.contains_key(V3) {
            let timestamp = only_value(headers, &TIME)?;
            return Ok(Self::V3 {
                signature: BASE64
                    .decode(only_value(headers, &V3)?)
                    .map_err(|_| SignatureError::MalformedHeader(V3))?,
                timestamp,
                signed_at: unix_time(timestamp, TimeUnit::Milliseconds)
                    .ok_or(SignatureError::MalformedHeader(TIME))?,
            });
        }
        if !headers.contains_key(OLDER) {
            return Err(SignatureError::MissingHeader(V3));
        }
        let text = only_value(headers, &OLDER)?;
        let signature = match text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            true => None,
            false => hex::decode(text).ok(),
        };
        let signature = signature.ok_or(SignatureError::MalformedHeader(OLDER))?;
        match only_value(headers, &VERSION)? {
            "v2" => Ok(Self::V2(signature)),
            "v1" => Ok(Self::V1(signature)),
            _ => Err(SignatureError::MalformedHeader(VERSION)),
        }
    }

    fn is_signed_with(
        &self,
        secret: &Secret,
        request: &SignedRequest<'_>,
    ) -> Result<bool, SignatureError> {
        let (secret, body) = (secret.expose(), request.body());
        let method = request.method();
        Ok(match self {
            Self::V3 {
                signature,
                timestamp,
                ..
            } => {
                let url = request.url()?;
                [decoded(&url), url].iter().any(|url| {
                    let mac = v3_mac(secret, method, url, body, timestamp);
                    is_same(&mac, signature)
                })
            }
            Self::V2(signature) => {
                let url = request.url()?;
                let parts = [secret, method.as_str().as_bytes(), url.as_bytes(), body];
                is_same(&sha256(parts), signature)
            }
            Self::V1(signature) => is_same(&sha256([secret, body]), signature),
        })
    }
}

impl SignatureScheme for HubSpot {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        Head::read(&head.headers).map(drop)
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let head = Head::read(request.headers())?;
        for secret in secrets.iter() {
            if head.is_signed_with(secret, request)? {
                let signed = match head {
                    Head::V3 { signed_at, .. } => Signed::new().at(signed_at),
                    Head::V2(_) | Head::V1(_) => Signed::new(),
                };
                return Ok(match events_digest(request) {
                    Some(digest) => signed.value(EVENTS, digest),
                    None => signed,
                });
            }
        }
        Err(SignatureError::NoMatch)
    }

    fn signs_time(&self) -> bool {
        true
    }

    fn signs_url(&self) -> bool {
        true
    }

    /// Version 1 of the signature does not cover the URL, so it can be verified without a public
    /// URL.
    fn needs_public_url(&self) -> bool {
        false
    }

    fn description(&self) -> Cow<'static, str> {
        "HMAC-SHA256 in base64, of the URL and the body".into()
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        let timestamp = to_unix_time(request.time(), TimeUnit::Milliseconds).to_string();
        let url = decoded(&request.url()?);
        let mac = v3_mac(
            secret.expose(),
            request.method(),
            &url,
            request.body(),
            &timestamp,
        );
        request.insert_header(TIME, timestamp)?;
        request.insert_header(V3, BASE64.encode(mac))
    }
}

fn v3_mac(key: &[u8], method: &Method, url: &str, body: &[u8], timestamp: &str) -> Vec<u8> {
    let parts = [
        method.as_str().as_bytes(),
        url.as_bytes(),
        body,
        timestamp.as_bytes(),
    ];
    hmac(Hash::Sha256, key, parts)
}

/// The URL, after decoding the characters that HubSpot decodes before it signs.
fn decoded(url: &str) -> String {
    const DECODED: [(&str, &str); 12] = [
        ("%3A", ":"),
        ("%2F", "/"),
        ("%3F", "?"),
        ("%40", "@"),
        ("%21", "!"),
        ("%24", "$"),
        ("%27", "'"),
        ("%28", "("),
        ("%29", ")"),
        ("%2A", "*"),
        ("%2C", ","),
        ("%3B", ";"),
    ];
    let mut decoded = String::with_capacity(url.len());
    let mut rest = url;
    while let Some(at) = rest.find('%') {
        let (before, after) = rest.split_at(at);
        decoded.push_str(before);
        let code = after.get(..3).map(str::to_ascii_uppercase);
        let known = DECODED
            .iter()
            .find(|(known, _)| code.as_deref() == Some(*known));
        let (text, length) = match known {
            Some((_, text)) => (*text, 3),
            None => ("%", 1),
        };
        decoded.push_str(text);
        rest = after.get(length..).unwrap_or_default();
    }
    decoded.push_str(rest);
    decoded
}

/// A digest of a batch of events that is the same for all attempts. `None` for any other body.
fn events_digest(request: &SignedRequest<'_>) -> Option<String> {
    let Ok(Value::Array(mut events)) = serde_json::from_slice(request.body()) else {
        return None;
    };
    for event in &mut events {
        if let Some(members) = event.as_object_mut() {
            members.remove(ATTEMPTS);
        }
    }
    let mut events = Value::from(events);
    // The members get a fixed order, whether or not `serde_json` preserves their original order.
    events.sort_all_objects();
    let events = events.to_string();
    let parts = [request.path_and_query().as_bytes(), events.as_bytes()];
    Some(hex::encode(crate::provider::digest::sha256_of(parts)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_characters_of_a_url_are_decoded() {
        assert_eq!(decoded("https://a/%3a%2F%3F?%40%2c"), "https://a/:/??@,");
        for kept in ["https://a/%20%25%26%3D", "%", "%3", "a%é", "%%"] {
            assert_eq!(decoded(kept), kept);
        }
    }

    #[test]
    fn the_number_of_the_attempt_is_not_part_of_the_digest() -> Result<(), http::Error> {
        let (head, ()) = http::Request::post("/hubspot").body(())?.into_parts();
        let of = |body: &str| events_digest(&SignedRequest::new(&head, body.as_bytes()));
        let first = of(r#"[{"eventId":1,"attemptNumber":0},{"eventId":1,"objectId":2}]"#);
        let retry = of(r#"[{"attemptNumber":3,"eventId":1},{"eventId":1,"objectId":2}]"#);
        assert!(first.is_some());
        assert_eq!(first, retry);
        for other in [
            r#"[{"eventId":1,"attemptNumber":0},{"eventId":1,"objectId":3}]"#,
            r#"[{"eventId":1,"attemptNumber":0}]"#,
        ] {
            let other = of(other);
            assert!(other.is_some());
            assert_ne!(other, first);
        }
        Ok(())
    }

    #[test]
    fn an_object_is_no_batch_of_events() -> Result<(), http::Error> {
        let (head, ()) = http::Request::post("/hubspot").body(())?.into_parts();
        for body in [r#"{"eventId":1}"#, ""] {
            let request = SignedRequest::new(&head, body.as_bytes());
            assert_eq!(events_digest(&request), None);
        }
        Ok(())
    }
}
