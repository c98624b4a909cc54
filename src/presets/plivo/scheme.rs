//! Plivo's three versions of its signature of the URL.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::request::Parts;
use http::{HeaderMap, HeaderName, Method};

use crate::provider::signature::digests::{Hash, hmac, request_digest};
use crate::provider::signature::form::{Field, sorted_fields};
use crate::provider::signature::same_secret::is_same;
use crate::provider::signature::{
    SignError, SignatureError, SignatureScheme, Signed, SignedRequest, UnsignedRequest, only_value,
};
use crate::provider::{Secret, Secrets};

/// The name of the value with the digest that identifies a request about a message.
pub(super) const MESSAGE: &str = "message";

const V3: HeaderName = HeaderName::from_static("x-plivo-signature-v3");
const V3_NONCE: HeaderName = HeaderName::from_static("x-plivo-signature-v3-nonce");
const V2: HeaderName = HeaderName::from_static("x-plivo-signature-v2");
const V2_NONCE: HeaderName = HeaderName::from_static("x-plivo-signature-v2-nonce");
const V1: HeaderName = HeaderName::from_static("x-plivo-signature");

/// The maximum number of signatures that are checked. Checking more would only cost time.
const MAX_SIGNATURES: usize = 10;

#[derive(Debug)]
pub(super) struct Plivo;

/// The values in the headers of a request.
enum Head<'a> {
    V3 { signatures: &'a str, nonce: &'a str },
    V2 { signature: &'a str, nonce: &'a str },
    V1 { signature: &'a str },
}

impl<'a> Head<'a> {
    fn read(headers: &'a HeaderMap) -> Result<Self, SignatureError> {
        Ok(if headers.contains_key(V3) {
            Self::V3 {
                signatures: only_value(headers, &V3)?,
                nonce: only_value(headers, &V3_NONCE)?,
            }
        } else if headers.contains_key(V2) {
            Self::V2 {
                signature: only_value(headers, &V2)?,
                nonce: only_value(headers, &V2_NONCE)?,
            }
        } else if headers.contains_key(V1) {
            Self::V1 {
                signature: only_value(headers, &V1)?,
            }
        } else {
            return Err(SignatureError::MissingHeader(V3));
        })
    }

    /// The decoded signatures. One of them must match.
    fn signatures(&self) -> Vec<Vec<u8>> {
        let decode = |text: &str| BASE64.decode(text).ok();
        match self {
            Self::V3 { signatures, .. } => signatures
                .split(',')
                .take(MAX_SIGNATURES)
                .filter_map(decode)
                .collect(),
            Self::V2 { signature, .. } | Self::V1 { signature } => {
                decode(signature).into_iter().collect()
            }
        }
    }

    fn hash(&self) -> Hash {
        match self {
            Self::V3 { .. } | Self::V2 { .. } => Hash::Sha256,
            Self::V1 { .. } => Hash::Sha1,
        }
    }

    /// The signed content. `None` if there are too many fields.
    fn content(&self, method: &Method, url: &str, body: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::V3 { nonce, .. } => v3_content(method, url, body, nonce),
            Self::V2 { nonce, .. } => {
                let (base, _) = split(url);
                Some([base, nonce].concat().into_bytes())
            }
            Self::V1 { .. } => {
                let form = concatenated(&sorted_fields(body)?);
                Some([url.as_bytes(), &form].concat())
            }
        }
    }
}

impl SignatureScheme for Plivo {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        Head::read(&head.headers).map(drop)
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let head = Head::read(request.headers())?;
        let url = request.url()?;
        let signatures = head.signatures();
        let matches = |secret: &Secret| {
            forms_of(&url).any(|url| {
                let content = head.content(request.method(), &url, request.body());
                let mac =
                    content.map(|content| hmac(head.hash(), secret.expose(), [content.as_slice()]));
                let is_mac =
                    |signature: &Vec<u8>| mac.as_ref().is_some_and(|mac| is_same(mac, signature));
                signatures.iter().any(is_mac)
            })
        };
        if !secrets.iter().any(matches) {
            return Err(SignatureError::NoMatch);
        }
        let (_, query) = split(request.path_and_query());
        Ok(if is_about_message(query, request.body()) {
            let digest = request_digest(request.path_and_query(), request.body());
            Signed::new().value(MESSAGE, digest)
        } else {
            Signed::new()
        })
    }

    fn signed_content(
        &self,
        request: &SignedRequest<'_>,
    ) -> Result<Option<Vec<u8>>, SignatureError> {
        let head = Head::read(request.headers())?;
        Ok(head.content(request.method(), &request.url()?, request.body()))
    }

    fn signs_body(&self) -> bool {
        false
    }

    fn signs_url(&self) -> bool {
        true
    }

    fn description(&self) -> Cow<'static, str> {
        "HMAC-SHA256 in base64, of the URL and the form".into()
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        const NONCE: &str = "12345678901234567890";
        let url = request.url()?;
        let content = v3_content(request.method(), &url, request.body(), NONCE)
            .ok_or(SignError::new("the form has too many fields"))?;
        let mac = hmac(Hash::Sha256, secret.expose(), [content.as_slice()]);
        request.insert_header(V3_NONCE, NONCE)?;
        request.insert_header(V3, BASE64.encode(mac))
    }
}

fn v3_content(method: &Method, url: &str, body: &[u8], nonce: &str) -> Option<Vec<u8>> {
    let (base, query) = split(url);
    let form = match *method {
        // A GET has no parameters except in its URL.
        Method::GET => Vec::new(),
        _ => sorted_fields(body)?,
    };
    let query = joined(&sorted_fields(query.as_bytes())?);
    let mut content = base.as_bytes().to_vec();
    if !query.is_empty() || !form.is_empty() {
        content.push(b'?');
        content.extend_from_slice(&query);
    }
    if !query.is_empty() && !form.is_empty() {
        content.push(b'.');
    }
    content.extend_from_slice(&concatenated(&form));
    content.push(b'.');
    content.extend_from_slice(nonce.as_bytes());
    Some(content)
}

/// Whether the parameters, in the query or in the form, name a message. Requests about one call, on
/// the other hand, can be identical.
fn is_about_message(query: &str, body: &[u8]) -> bool {
    let names_message = |form| {
        let fields = sorted_fields(form).unwrap_or_default();
        fields.iter().any(|(name, _)| name == b"MessageUUID")
    };
    names_message(query.as_bytes()) || names_message(body)
}

/// The URL before its query, and the query.
fn split(url: &str) -> (&str, &str) {
    url.split_once('?').unwrap_or((url, ""))
}

/// The URL and, if its path is only a slash, the URL without the slash: a URL that was configured
/// without a path is signed as it was configured, but called with a slash.
fn forms_of(url: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let (base, query) = split(url);
    let host = base.strip_suffix('/').filter(|host| {
        host.split_once("://")
            .is_some_and(|(_, host)| !host.contains('/'))
    });
    let without = host.map(|host| match url.len() == base.len() {
        true => Cow::Borrowed(host),
        false => Cow::Owned(format!("{host}?{query}")),
    });
    std::iter::once(Cow::Borrowed(url)).chain(without)
}

fn joined(fields: &[Field]) -> Vec<u8> {
    let pairs = fields
        .iter()
        .map(|(name, value)| [name, b"=".as_slice(), value].concat());
    pairs.collect::<Vec<_>>().join(&b'&')
}

fn concatenated(fields: &[Field]) -> Vec<u8> {
    let pairs = fields
        .iter()
        .flat_map(|(name, value)| name.iter().chain(value));
    pairs.copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_told_from_a_call() {
        assert!(is_about_message("", b"From=1&MessageUUID=m-1"));
        assert!(is_about_message("MessageUUID=m-1", b""));
        assert!(!is_about_message("a=MessageUUID", b"CallUUID=c-1&Digits=1"));
        assert!(!is_about_message("", b""));
    }

    #[test]
    fn a_url_without_a_path_counts_with_and_without_a_slash() {
        let forms = |url| forms_of(url).collect::<Vec<_>>();
        assert_eq!(
            forms("https://example.com/"),
            ["https://example.com/", "https://example.com"]
        );
        assert_eq!(forms("https://example.com/a/"), ["https://example.com/a/"]);
        assert_eq!(
            forms("https://example.com/?a"),
            ["https://example.com/?a", "https://example.com?a"]
        );
    }
}
