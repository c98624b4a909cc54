//! The part of a request that is kept. It has no signature and no token, and contains only some headers.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Method};

use super::traceparent::{TRACEPARENT, traceparent};
use crate::provider::{Provider, received_uri};

/// The format of the columns of `kept_requests`.
pub(super) const FORMAT: i16 = 1;

/// A request as it is kept: without the signature or the token, which is not needed again, and only with the headers
/// that the provider's description or the application lists.
#[derive(Clone, Debug)]
pub(crate) struct KeptRequest {
    pub(super) method: Method,
    pub(super) uri: String,
    /// Lines of `name: value`.
    pub(super) headers: Vec<u8>,
    pub(super) body: Bytes,
    /// How long the request stays once the delivery is processed, if it stays.
    pub(super) archived_for: Option<Duration>,
}

impl KeptRequest {
    /// The kept part of an authentic request.
    pub(crate) fn new<'a>(
        head: &Parts,
        body: &Bytes,
        provider: &'a Provider,
        further_headers: impl IntoIterator<Item = &'a HeaderName>,
        archived_for: Option<Duration>,
    ) -> Self {
        let has_trace = traceparent(&head.headers).is_some();
        let names = [&CONTENT_TYPE, &CONTENT_ENCODING]
            .into_iter()
            // With this header, later attempts can point back to the first one.
            .chain(has_trace.then_some(&TRACEPARENT))
            .chain(provider.identifying_headers())
            .chain(further_headers);
        Self {
            method: head.method.clone(),
            uri: provider.without_secrets(&received_uri(head).to_string()),
            headers: encode(&head.headers, names),
            body: body.clone(),
            archived_for,
        }
    }
}

impl KeptRequest {
    pub(super) fn body_bytes(&self) -> i32 {
        i32::try_from(self.body.len()).unwrap_or(i32::MAX)
    }
}

fn encode<'a>(headers: &HeaderMap, names: impl Iterator<Item = &'a HeaderName>) -> Vec<u8> {
    let mut encoded = Vec::new();
    let mut written = Vec::new();
    for name in names {
        if written.contains(&name) {
            continue;
        }
        written.push(name);
        for value in headers.get_all(name) {
            encoded.extend_from_slice(name.as_str().as_bytes());
            encoded.extend_from_slice(b": ");
            encoded.extend_from_slice(value.as_bytes());
            encoded.push(b'\n');
        }
    }
    encoded
}

/// The headers of a kept request. `None` if they are not in the form that `encode` writes.
pub(super) fn decode(encoded: &[u8]) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    for line in encoded.split(|byte| *byte == b'\n') {
        if line.is_empty() {
            continue;
        }
        let colon = line.windows(2).position(|pair| pair == b": ")?;
        let name = HeaderName::from_bytes(line.get(..colon)?).ok()?;
        headers.append(name, HeaderValue::from_bytes(line.get(colon + 2..)?).ok()?);
    }
    Some(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_kept_as_they_are() {
        const ID: HeaderName = HeaderName::from_static("x-id");
        let mut headers = HeaderMap::new();
        for value in [&b"a: b"[..], b"", b"\xff\t"] {
            if let Ok(value) = HeaderValue::from_bytes(value) {
                headers.append(ID, value);
            }
        }
        headers.insert("authorization", HeaderValue::from_static("secret"));
        let encoded = encode(&headers, [&ID, &ID, &CONTENT_TYPE].into_iter());
        headers.remove("authorization");
        assert_eq!(decode(&encoded), Some(headers));
        assert_eq!(decode(b"no colon"), None);
    }
}
