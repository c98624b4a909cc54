//! Twilio's signature of the URL and the sorted form.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::HeaderName;
use http::request::Parts;

use crate::provider::signature::digests::{Hash, hmac, request_digest, sha256};
use crate::provider::signature::form::{encode, fields, only_field};
use crate::provider::signature::same_secret::is_same;
use crate::provider::signature::{
    SignError, SignatureError, SignatureScheme, Signed, SignedRequest, UnsignedRequest, only_value,
};
use crate::provider::{Secret, Secrets};

/// The name of the value with the digest that identifies a request.
pub(super) const REQUEST: &str = "request";

const SIGNATURE: HeaderName = HeaderName::from_static("x-twilio-signature");
/// The header that names the key and the hash of a signature. Without this header, the key is the auth token, and the
/// hash is SHA-1.
const SETTINGS: HeaderName = HeaderName::from_static("x-twilio-webhooks-signature-settings");
const BODY_DIGEST: &str = "bodySHA256";

#[derive(Debug)]
pub(super) struct Twilio;

impl SignatureScheme for Twilio {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        signature(&head.headers)?;
        hash(&head.headers).map(drop)
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let signature = signature(request.headers())?;
        let hash = hash(request.headers())?;
        let url = request.url()?;
        let fields = signed_fields(&url, request.body()).ok_or(SignatureError::NoMatch)?;
        let urls = forms_of(&url);
        let matches = |secret: &Secret| {
            urls.iter().any(|url| {
                let mac = hmac(hash, secret.expose(), [url.as_bytes(), fields.as_slice()]);
                is_same(&mac, &signature)
            })
        };
        if secrets.iter().any(matches) {
            Ok(Signed::new().value(
                REQUEST,
                request_digest(request.path_and_query(), request.body()),
            ))
        } else {
            Err(SignatureError::NoMatch)
        }
    }

    fn signed_content(
        &self,
        request: &SignedRequest<'_>,
    ) -> Result<Option<Vec<u8>>, SignatureError> {
        let url = request.url()?;
        let fields = signed_fields(&url, request.body()).ok_or(SignatureError::NoMatch)?;
        Ok(Some([url.as_bytes(), &fields].concat()))
    }

    fn signs_body_bytes(&self) -> bool {
        false
    }

    fn signs_url(&self) -> bool {
        true
    }

    fn description(&self) -> Cow<'static, str> {
        "HMAC-SHA1 or HMAC-SHA256 in base64, of the URL and the form".into()
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        let url = request.url()?;
        let fields = signed_fields(&url, request.body())
            .ok_or(SignError::new("the query has the SHA-256 of another body"))?;
        let hash = hash(request.headers())
            .map_err(|_| SignError::new("the signature's settings name no known hash"))?;
        let mac = hmac(hash, secret.expose(), [url.as_bytes(), fields.as_slice()]);
        request.insert_header(SIGNATURE, BASE64.encode(mac))
    }
}

fn signature(headers: &http::HeaderMap) -> Result<Vec<u8>, SignatureError> {
    BASE64
        .decode(only_value(headers, &SIGNATURE)?)
        .map_err(|_| SignatureError::MalformedHeader(SIGNATURE))
}

/// The hash that a request's settings name.
fn hash(headers: &http::HeaderMap) -> Result<Hash, SignatureError> {
    if !headers.contains_key(SETTINGS) {
        return Ok(Hash::Sha1);
    }
    let mut settings = only_value(headers, &SETTINGS)?.split(',').map(str::trim);
    match settings.find_map(|setting| setting.strip_prefix("algorithm=")) {
        Some("HMAC_SHA1") => Ok(Hash::Sha1),
        Some("HMAC_SHA256") => Ok(Hash::Sha256),
        Some(_) | None => Err(SignatureError::MalformedHeader(SETTINGS)),
    }
}

fn query(url: &str) -> Option<&str> {
    url.split_once('?').map(|(_, query)| query)
}

/// The signed content after the URL. `None` if the query has the digest of another body, or if there are too many
/// fields.
fn signed_fields(url: &str, body: &[u8]) -> Option<Vec<u8>> {
    let query = fields(query(url).unwrap_or_default().as_bytes())?;
    if query.iter().any(|(name, _)| name == BODY_DIGEST.as_bytes()) {
        let expected = hex::encode(sha256([body]));
        let presented = only_field(&query, BODY_DIGEST)?;
        return is_same(expected.as_bytes(), presented).then(Vec::new);
    }
    // The values of a repeated name are sorted, and equal values count once.
    let mut by_name = BTreeMap::<_, BTreeSet<_>>::new();
    for (name, value) in fields(body)? {
        by_name.entry(name).or_default().insert(value);
    }
    let mut signed = Vec::with_capacity(body.len());
    for (name, values) in by_name {
        for value in values {
            signed.extend_from_slice(&name);
            signed.extend_from_slice(&value);
        }
    }
    Some(signed)
}

/// The URL in the forms that Twilio may have signed: with and without the port, and with the query
/// as it is, as browsers encode it, and as old libraries encode it.
fn forms_of(url: &str) -> BTreeSet<String> {
    let (base, query) = match url.split_once('?') {
        Some((base, query)) => (base, Some(query)),
        None => (url, None),
    };
    let queries: Vec<Option<String>> = match query {
        None => vec![None],
        Some(query) => [
            query.to_owned(),
            as_browsers_do(query),
            as_old_ones_do(query),
        ]
        .map(Some)
        .into(),
    };
    let mut forms = BTreeSet::new();
    for base in bases(base) {
        for query in &queries {
            forms.insert(match query {
                Some(query) => format!("{base}?{query}"),
                None => base.clone(),
            });
        }
    }
    forms
}

/// Scheme, host and path in up to three forms: unchanged, without a port, and with the default
/// port.
fn bases(base: &str) -> Vec<String> {
    let Some((scheme, rest)) = base.split_once("://") else {
        return vec![base.to_owned()];
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let default = if scheme == "https" { "443" } else { "80" };
    match authority.rsplit_once(':') {
        // The colon must not be inside an IPv6 address or in front of the host.
        Some((host, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => {
            vec![base.to_owned(), format!("{scheme}://{host}{path}")]
        }
        _ => vec![
            base.to_owned(),
            format!("{scheme}://{authority}:{default}{path}"),
        ],
    }
}

/// The query, after encoding the characters that browsers encode.
fn as_browsers_do(query: &str) -> String {
    let mut encoded = String::with_capacity(query.len());
    for byte in query.bytes() {
        match byte {
            b' ' | b'"' | b'#' | b'<' | b'>' | b'\'' | 0..0x20 | 0x7f.. => {
                encoded.push_str(&format!("%{byte:02X}"));
            }
            _ => encoded.push(char::from(byte)),
        }
    }
    encoded
}

/// The query, decoded and encoded again, with the values of a repeated name next to each other.
fn as_old_ones_do(query: &str) -> String {
    let encode = |text: &[u8]| encode(text, "-_.!~*'()");
    let Some(mut pairs) = fields(query.as_bytes()) else {
        return query.to_owned();
    };
    let names = pairs.iter().map(|(name, _)| name.clone());
    let names = names.collect::<Vec<_>>();
    pairs.sort_by_cached_key(|(name, _)| names.iter().position(|first| first == name));
    let pairs = pairs
        .iter()
        .map(|(name, value)| format!("{}={}", encode(name), encode(value)));
    pairs.collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed(url: &str, body: &str) -> Option<String> {
        let fields = signed_fields(url, body.as_bytes())?;
        Some(String::from_utf8_lossy(&fields).into_owned())
    }

    #[test]
    fn fields_are_sorted_and_their_values_count_once() {
        let url = "https://example.com/";
        assert_eq!(signed(url, "").as_deref(), Some(""));
        assert_eq!(
            signed(url, "b=2&a=x+y&b=1&b=2&a=%2B").as_deref(),
            Some("a+ax yb1b2")
        );
    }

    #[test]
    fn a_body_digest_in_the_query_is_checked() {
        let digest = hex::encode(sha256([b"{}".as_slice()]));
        let url = format!("https://example.com/?a=b&bodySHA256={digest}");
        assert_eq!(signed(&url, "{}").as_deref(), Some(""));
        assert_eq!(signed(&url, "{} "), None);
        assert_eq!(signed(&format!("{url}&bodySHA256={digest}"), "{}"), None);
        assert_eq!(signed("https://example.com/?bodySHA256=", "{}"), None);
    }

    #[test]
    fn a_url_has_the_forms_that_libraries_make_of_it() {
        let forms = |url: &str| forms_of(url).into_iter().collect::<Vec<_>>();
        assert_eq!(
            forms("https://u:p@example.com/a"),
            ["https://u:p@example.com/a", "https://u:p@example.com:443/a"]
        );
        assert_eq!(
            forms("http://example.com:8080"),
            ["http://example.com", "http://example.com:8080"]
        );
        assert_eq!(
            forms("http://[::1]/"),
            ["http://[::1]/", "http://[::1]:80/"]
        );
        let encoded = forms("https://example.com/?a=b'c,d");
        for query in ["a=b'c,d", "a=b%27c,d", "a=b'c%2Cd"] {
            assert!(encoded.contains(&format!("https://example.com/?{query}")));
        }
        assert_eq!(as_old_ones_do("b=1&a=2&b=%2B+"), "b=1&b=%2B%20&a=2");
    }
}
