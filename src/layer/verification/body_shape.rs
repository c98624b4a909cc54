//! The visible shape of a body whose signature does not match. The body is not parsed, because it is not authentic.

use std::fmt;

use http::HeaderMap;
use http::header::CONTENT_LENGTH;

/// The length of a body, and its obvious flaw, if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BodyShape {
    pub(crate) length: usize,
    pub(crate) flaw: Option<Flaw>,
}

/// A flaw that no provider would sign, so something between the provider and the layer has caused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    Empty,
    /// Its length differs from the announced length. The two lengths, in bytes, are stored as numbers, so no text of
    /// the sender gets into logs.
    OtherLength {
        announced: u64,
        arrived: usize,
    },
    NotUtf8,
    /// It begins like a JSON object or list, but does not end like one.
    CutOff,
}

impl BodyShape {
    pub(crate) fn of(headers: &HeaderMap, body: &[u8]) -> Self {
        Self {
            length: body.len(),
            flaw: flaw(announced(headers), body),
        }
    }
}

/// The length that the sender has announced.
fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn flaw(announced: Option<u64>, body: &[u8]) -> Option<Flaw> {
    let arrived = body.len();
    let is_other = |announced: &u64| usize::try_from(*announced) != Ok(arrived);
    let trimmed = body.trim_ascii();
    match (trimmed.first(), trimmed.last()) {
        _ if body.is_empty() => Some(Flaw::Empty),
        _ if let Some(announced) = announced.filter(is_other) => {
            Some(Flaw::OtherLength { announced, arrived })
        }
        _ if std::str::from_utf8(body).is_err() => Some(Flaw::NotUtf8),
        (Some(b'{'), last) if last != Some(&b'}') => Some(Flaw::CutOff),
        (Some(b'['), last) if last != Some(&b']') => Some(Flaw::CutOff),
        _ => None,
    }
}

/// The text for the operator.
impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherLength { announced, arrived } => {
                return write!(
                    f,
                    "Content-Length says {announced} bytes, and {arrived} have arrived: a middleware outside of the \
                     layer has changed the body"
                );
            }
            Self::Empty => {
                "the body is empty: the sender has sent none, or a middleware outside of the layer has read it"
            }
            Self::NotUtf8 => {
                "the body is not UTF-8: it is compressed, or was written in another character set"
            }
            Self::CutOff => "the body is not complete JSON: it was cut off",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_was_cut_off_is_told_from_one_that_is_whole() {
        for (body, flaw) in [
            (&b""[..], Some(Flaw::Empty)),
            (b"{\"name\":\"caf\xe9\"}", Some(Flaw::NotUtf8)),
            (b"\x1f\x8b\x08", Some(Flaw::NotUtf8)),
            (b"{\"a\":1", Some(Flaw::CutOff)),
            (b" [1, 2", Some(Flaw::CutOff)),
            (b"{", Some(Flaw::CutOff)),
            (b"{\"a\":1}\n", None),
            (b"[]", None),
            (b" ", None),
            (b"a=1&b=2", None),
            (b"<event/>", None),
        ] {
            let length = body.len();
            let shape = BodyShape::of(&HeaderMap::new(), body);
            assert_eq!(shape, BodyShape { length, flaw }, "{body:?}");
        }
    }

    #[test]
    fn a_body_of_another_length_than_was_announced_is_named() {
        let body = b"{\"a\":1";
        let arrived = body.len();
        let other = |announced| Some(Flaw::OtherLength { announced, arrived });
        for (header, flaw) in [
            ("9", other(9)),
            ("18446744073709551615", other(u64::MAX)),
            // If the length does not differ, the other flaws are reported.
            ("6", Some(Flaw::CutOff)),
            ("nonsense", Some(Flaw::CutOff)),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_LENGTH, http::HeaderValue::from_static(header));
            assert_eq!(BodyShape::of(&headers, body).flaw, flaw, "{header}");
        }
        assert_eq!(flaw(Some(5), b""), Some(Flaw::Empty));
    }
}
