//! The header `traceparent` of W3C Trace Context, which identifies the trace of a request.

use http::HeaderMap;
use http::header::HeaderName;

pub(crate) static TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The trace context of the request. `None` if there is none, or if it does not have the form of version 00: the
/// sender of a request can write anything into the header.
pub(crate) fn traceparent(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(&TRACEPARENT)?.to_str().ok()?;
    let mut parts = text.split('-');
    let lengths = [2, 32, 16, 2];
    let are_hex = lengths.iter().all(|length| {
        parts.next().is_some_and(|part| {
            let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            part.len() == *length && part.bytes().all(is_hex)
        })
    });
    (are_hex && parts.next().is_none() && text.starts_with("00-")).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_context_is_one() {
        const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        for (text, is_one) in [
            (GOOD, true),
            ("", false),
            ("hunter2", false),
            (
                "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                false,
            ),
            (
                "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
                false,
            ),
            (
                "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333-01",
                false,
            ),
            (
                "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
                false,
            ),
            (
                "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
                false,
            ),
        ] {
            let mut headers = HeaderMap::new();
            if let Ok(value) = text.parse() {
                headers.insert(&TRACEPARENT, value);
            }
            assert_eq!(traceparent(&headers), is_one.then_some(GOOD), "{text}");
        }
        assert_eq!(traceparent(&HeaderMap::new()), None);
    }
}
