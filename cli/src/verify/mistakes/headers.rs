//! Mistakes in the headers: renamed on the way, repeated, or in quotes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use idempotent_webhook::testing::TestDelivery;

use super::Mistake;
use crate::verify::case::Case;

pub fn mistakes(case: &Case) -> Vec<Mistake> {
    let changes = [
        (
            renamed(&case.head.headers),
            "the names of its headers have - in place of _, and no HTTP_ before them",
            "A gateway or a server in between has renamed the headers, as CGI does: take the headers of the request \
             itself.",
        ),
        (
            once(&case.head.headers),
            "each header is there once",
            "A proxy adds headers that are already there: make it replace them, or leave them unchanged.",
        ),
        (
            unquoted(&case.head.headers),
            "the values of its headers have no quotes around them",
            "The tool that took or sent the request has put the values into quotes.",
        ),
        (
            prefixed(&case.head.headers),
            "its signature has sha256= before it",
            "The sender has left out sha256=, which the provider writes before the digits.",
        ),
        (
            encoded(&case.head.headers, |digits| {
                Some(BASE64.encode(hex::decode(digits).ok()?))
            }),
            "its signature is in base64 in place of hexadecimal digits",
            OTHER_ENCODING,
        ),
        (
            encoded(&case.head.headers, |text| {
                Some(hex::encode(BASE64.decode(text).ok()?))
            }),
            "its signature is in hexadecimal digits in place of base64",
            OTHER_ENCODING,
        ),
    ];
    let changes = changes.map(|(headers, change, cure)| (headers, change.to_owned(), cure));
    let renamed = other_names(case).into_iter().map(|(headers, [from, to])| {
        let cure =
            "The sender, or something in between, uses a different header name from the provider's.";
        (headers, format!("its header {from} is named {to}"), cure)
    });
    changes
        .into_iter()
        .chain(renamed)
        .filter(|(headers, ..)| *headers != case.head.headers)
        .map(|(headers, change, cure)| {
            let mut case = case.clone();
            case.head.headers = headers;
            Mistake {
                case,
                change,
                cure: cure.to_owned(),
            }
        })
        .collect()
}

const OTHER_ENCODING: &str =
    "The sender writes the signature in a different encoding from the provider's.";

/// The headers with one of them renamed: each header that the provider does not send is tried under
/// the name of each missing header. Also returns both names.
fn other_names(case: &Case) -> Vec<(HeaderMap, [HeaderName; 2])> {
    let sample = case
        .preset()
        .ok()
        .and_then(|preset| TestDelivery::new(&preset).try_request::<Bytes>().ok());
    let Some(sample) = sample else {
        return Vec::new();
    };
    let (headers, sent) = (&case.head.headers, sample.headers());
    let missing = sent.keys().filter(|name| !headers.contains_key(*name));
    let missing: Vec<_> = missing.filter(|name| *name != CONTENT_TYPE).collect();
    let strange = headers.iter().filter(|(name, _)| !sent.contains_key(*name));
    strange
        .flat_map(|(from, value)| {
            missing.iter().map(move |to| {
                let mut headers = headers.clone();
                headers.insert((*to).clone(), value.clone());
                (headers, [from.clone(), (*to).clone()])
            })
        })
        .collect()
}

/// The headers, with each value in another encoding. A prefix such as `sha256=` stays unchanged.
fn encoded(headers: &HeaderMap, encode: impl Fn(&str) -> Option<String>) -> HeaderMap {
    let mut headers = headers.clone();
    for value in headers.values_mut() {
        let Ok(text) = value.to_str() else {
            continue;
        };
        let start = text.find('=').filter(|at| *at < "sha256=".len());
        let (prefix, rest) = text.split_at(start.map_or(0, |at| at + 1));
        let other = encode(rest).map(|rest| HeaderValue::from_str(&format!("{prefix}{rest}")));
        if let Some(Ok(other)) = other {
            *value = other;
        }
    }
    headers
}

fn renamed(headers: &HeaderMap) -> HeaderMap {
    let rename = |(name, value): (&HeaderName, &HeaderValue)| {
        let name = name.as_str();
        let name = name.strip_prefix("http_").unwrap_or(name);
        let name = name.replace('_', "-").parse().ok()?;
        Some((name, value.clone()))
    };
    headers.iter().filter_map(rename).collect()
}

/// The headers with `sha256=` before each value of 64 hexadecimal digits.
fn prefixed(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    for value in headers.values_mut() {
        let digits = value.as_bytes();
        if digits.len() == 64 && digits.iter().all(u8::is_ascii_hexdigit) {
            let prefixed = HeaderValue::from_bytes(&[b"sha256=", digits].concat());
            *value = prefixed.unwrap_or_else(|_| value.clone());
        }
    }
    headers
}

fn once(headers: &HeaderMap) -> HeaderMap {
    let first = |name: &HeaderName| Some((name.clone(), headers.get(name)?.clone()));
    headers.keys().filter_map(first).collect()
}

fn unquoted(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    for value in headers.values_mut() {
        let inner = value.as_bytes().strip_prefix(b"\"");
        let inner = inner.and_then(|inner| inner.strip_suffix(b"\""));
        if let Some(Ok(inner)) = inner.map(HeaderValue::from_bytes) {
            *value = inner;
        }
    }
    headers
}
