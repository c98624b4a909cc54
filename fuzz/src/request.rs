//! Reads a request from bytes.

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request};

/// A request in the form of HTTP/1.1, with line breaks of one byte: `POST /path?query`, headers, an empty line and the
/// body. Anything that cannot be in a request is left out, so any bytes give a request.
pub fn read_request(text: &[u8]) -> (Parts, Bytes) {
    let (head, body) = split(text, b"\n\n").unwrap_or((text, b""));
    let mut lines = head.split(|byte| *byte == b'\n');
    let (mut parts, ()) = Request::new(()).into_parts();
    let (method, uri) = split(lines.next().unwrap_or_default(), b" ").unwrap_or_default();
    parts.method = Method::from_bytes(method).unwrap_or(Method::POST);
    parts.uri = uri.try_into().unwrap_or_default();
    for (name, value) in lines.filter_map(|line| split(line, b": ")) {
        let name = HeaderName::from_bytes(name);
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value)) {
            parts.headers.append(name, value);
        }
    }
    (parts, Bytes::copy_from_slice(body))
}

fn split<'a>(text: &'a [u8], separator: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = text
        .windows(separator.len())
        .position(|window| window == separator)?;
    Some((&text[..at], &text[at + separator.len()..]))
}
