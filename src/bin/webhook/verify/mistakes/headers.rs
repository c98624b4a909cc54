//! The headers: renamed on the way, repeated, or in quotes.

use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::Mistake;
use crate::verify::case::Case;

pub fn mistakes(case: &Case) -> Vec<Mistake> {
    let changes = [
        (
            renamed(&case.head.headers),
            "the names of its headers have - in place of _, and no HTTP_ before them",
            "A gateway or a server between has renamed the headers, as CGI does: take those of the request itself.",
        ),
        (
            once(&case.head.headers),
            "each header is there once",
            "A proxy adds headers that are there already: let it set them, or not touch them.",
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
    ];
    let changes = changes.into_iter();
    let changes = changes.filter(|(headers, ..)| *headers != case.head.headers);
    changes
        .map(|(headers, change, cure)| {
            let mut case = case.clone();
            case.head.headers = headers;
            Mistake {
                case,
                change: change.to_owned(),
                cure: cure.to_owned(),
            }
        })
        .collect()
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

/// With `sha256=` before each value of 64 hexadecimal digits.
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
