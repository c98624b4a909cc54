//! What can be seen of a body whose signature does not match. It is not parsed: it is not authentic.

use std::fmt;

/// The length of a body, and what is plainly wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BodyShape {
    pub(crate) length: usize,
    pub(crate) flaw: Option<Flaw>,
}

/// What no provider signs: something between it and the layer has made it so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    Empty,
    NotUtf8,
    /// It begins as an object or a list of JSON, and ends otherwise.
    CutOff,
}

impl BodyShape {
    pub(crate) fn of(body: &[u8]) -> Self {
        Self {
            length: body.len(),
            flaw: flaw(body),
        }
    }
}

fn flaw(body: &[u8]) -> Option<Flaw> {
    let trimmed = body.trim_ascii();
    match (trimmed.first(), trimmed.last()) {
        _ if body.is_empty() => Some(Flaw::Empty),
        _ if std::str::from_utf8(body).is_err() => Some(Flaw::NotUtf8),
        (Some(b'{'), last) if last != Some(&b'}') => Some(Flaw::CutOff),
        (Some(b'['), last) if last != Some(&b']') => Some(Flaw::CutOff),
        _ => None,
    }
}

/// For the operator.
impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
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
            assert_eq!(BodyShape::of(body), BodyShape { length, flaw }, "{body:?}");
        }
    }
}
