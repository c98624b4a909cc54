//! Mistakes in the body: its line breaks, and JSON that was parsed and written again.

use bytes::Bytes;

use super::Mistake;
use crate::verify::case::Case;
use crate::verify::json::{self, Json};

const REWRITTEN: &str = "Something has parsed the body and written it again: a body parser before the \
verification, a proxy, or the tool that took the capture. Verify the bytes as they came.";

const LINE_BREAKS: &str = "Something has changed the line breaks: an editor, the tool that took the capture, or a \
program that reads the body as text, as curl --data does. Verify the bytes as they came (curl --data-binary).";

const CHARSET: &str = "Something reads the body as a text and writes it in another character set. Verify the bytes as they came.";

pub fn mistakes(case: &Case) -> impl Iterator<Item = Mistake> {
    let line_breaks = line_breaks(&case.body)
        .into_iter()
        .map(|(body, change)| (body, change.to_owned(), LINE_BREAKS));
    let chunks = unchunked(&case.body).map(|body| {
        let change = "the body is put together from its chunks".to_owned();
        let cure = "The capture has the body in chunks (Transfer-Encoding: chunked). A server puts them together.";
        (body, change, cure)
    });
    let other_charset = recoded(&case.body)
        .map(|(body, charset)| (body, format!("the body is in {charset}"), CHARSET));
    let forms = json_forms(&case.body).map(|(body, change)| (body, change, REWRITTEN));
    line_breaks
        .chain(chunks)
        .chain(other_charset)
        .chain(forms)
        .filter(|(body, ..)| *body != case.body)
        .map(|(body, change, cure)| Mistake {
            case: Case {
                body: body.into(),
                ..case.clone()
            },
            change,
            cure: cure.to_owned(),
        })
}

/// Converts a body that is not ASCII: from UTF-8 to ISO 8859-1, or from ISO 8859-1 to UTF-8.
fn recoded(body: &[u8]) -> Option<(Vec<u8>, &'static str)> {
    if body.is_ascii() {
        return None;
    }
    match std::str::from_utf8(body) {
        Ok(text) => {
            let bytes = text.chars().map(|c| u8::try_from(u32::from(c)).ok());
            Some((bytes.collect::<Option<_>>()?, "ISO 8859-1"))
        }
        Err(_) => {
            let text: String = body.iter().map(|byte| char::from(*byte)).collect();
            Some((text.into_bytes(), "UTF-8"))
        }
    }
}

fn line_breaks(body: &[u8]) -> Vec<(Vec<u8>, &'static str)> {
    let trimmed = body.trim_ascii_end();
    let one_less = body.strip_suffix(b"\n").unwrap_or(body);
    let one_less = one_less.strip_suffix(b"\r").unwrap_or(one_less);
    let lf = replace_crlf(body);
    let crlf = lf.split(|byte| *byte == b'\n').collect::<Vec<_>>();
    let crlf = crlf.join(&b"\r\n"[..]);
    let lf_trimmed = lf.trim_ascii_end().to_vec();
    let crlf_trimmed = crlf.trim_ascii_end().to_vec();
    vec![
        (one_less.to_vec(), "the body has no line break at its end"),
        (trimmed.to_vec(), "the body has no white space at its end"),
        (
            [body, b"\n"].concat(),
            "the body has a line break (\\n) at its end",
        ),
        (
            [body, b"\r\n"].concat(),
            "the body has a line break (\\r\\n) at its end",
        ),
        (
            [trimmed, b"\r\n"].concat(),
            "the body ends with \\r\\n in place of its line break",
        ),
        (lf, "the lines of the body end with \\n in place of \\r\\n"),
        (
            crlf,
            "the lines of the body end with \\r\\n in place of \\n",
        ),
        (
            lf_trimmed,
            "the lines of the body end with \\n in place of \\r\\n, and the last one with none",
        ),
        (
            crlf_trimmed,
            "the lines of the body end with \\r\\n in place of \\n, and the last one with none",
        ),
        (
            body.strip_prefix("\u{feff}".as_bytes())
                .unwrap_or(body)
                .to_vec(),
            "the body has no byte order mark at its start",
        ),
    ]
}

fn replace_crlf(body: &[u8]) -> Vec<u8> {
    let mut lf = Vec::with_capacity(body.len());
    for (at, byte) in body.iter().enumerate() {
        if (*byte, body.get(at + 1)) != (b'\r', Some(&b'\n')) {
            lf.push(*byte);
        }
    }
    lf
}

/// The body without the framing that HTTP/1.1 puts around each chunk.
fn unchunked(body: &Bytes) -> Option<Vec<u8>> {
    let mut rest = &**body;
    let mut whole = Vec::new();
    loop {
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        let (size, after) = rest.split_at_checked(end + 1)?;
        let size = usize::from_str_radix(std::str::from_utf8(size).ok()?.trim(), 16).ok()?;
        if size == 0 {
            return Some(whole);
        }
        let (chunk, after) = after.split_at_checked(size)?;
        whole.extend_from_slice(chunk);
        rest = after.strip_prefix(b"\r\n").or(after.strip_prefix(b"\n"))?;
    }
}

/// The forms that the body may have had before it was written again.
fn json_forms(body: &[u8]) -> impl Iterator<Item = (Vec<u8>, String)> {
    let json = std::str::from_utf8(body).ok().and_then(Json::parse);
    json.into_iter().flat_map(|json| {
        json::styles().flat_map(move |style| {
            let text = json.write(style);
            let change = format!("the body is written {style}");
            let with_line_break = format!("{change}, and with a line break (\\n) at its end");
            [
                (text.clone().into_bytes(), change),
                ([text.as_str(), "\n"].concat().into_bytes(), with_line_break),
            ]
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_put_together() {
        let of = |text: &'static str| unchunked(&Bytes::from_static(text.as_bytes()));
        assert_eq!(
            of("3\r\n{\"a\r\n3\r\n\":1\r\n1\r\n}\r\n0\r\n\r\n").as_deref(),
            Some(&b"{\"a\":1}"[..])
        );
        assert_eq!(of("{\n}"), None);
        assert_eq!(of("9\r\n{}\r\n0\r\n"), None);
    }
}
