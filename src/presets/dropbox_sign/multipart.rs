//! Finds a part of a `multipart/form-data` body.

use std::ops::Range;

use http::HeaderMap;
use http::header::CONTENT_TYPE;

/// The maximum length of a boundary, from RFC 2046.
const MAX_BOUNDARY: usize = 70;

/// The boundary, if the headers say that the body is `multipart/form-data`.
pub(super) fn boundary(headers: &HeaderMap) -> Option<&str> {
    let content_type = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let (kind, parameters) = content_type.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let boundary = parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let is_boundary = name.trim().eq_ignore_ascii_case("boundary");
        is_boundary.then(|| value.trim().trim_matches('"'))
    })?;
    (!boundary.is_empty() && boundary.len() <= MAX_BOUNDARY).then_some(boundary)
}

/// The range of the content of the only part with this name. `None` if the part is repeated, because parsers
/// differ in which part they use.
pub(super) fn only_part(body: &[u8], boundary: &str, name: &str) -> Option<Range<usize>> {
    let delimiter = format!("--{boundary}");
    let delimiter = delimiter.as_bytes();
    let wanted = format!("name=\"{name}\"");
    let mut found = None;
    let mut start = find(body, 0, delimiter)? + delimiter.len();
    // The text after the last delimiter is not a part.
    while let Some(end) = find(body, start, delimiter) {
        // The search stops at the end of the part. Otherwise, with many parts whose head has no
        // end, it would scan the rest of the body for each part.
        let head_end = find(body.get(..end)?, start, b"\r\n\r\n");
        let head = head_end.and_then(|head_end| body.get(start..head_end));
        if let (Some(head), Some(head_end)) = (head, head_end)
            && is_named(head, &wanted)
        {
            let content = head_end + 4..end.checked_sub(2)?;
            if found.is_some() || body.get(content.end..end)? != b"\r\n" {
                return None;
            }
            found = Some(content);
        }
        start = end + delimiter.len();
    }
    found.filter(|content| content.start <= content.end)
}

fn is_named(head: &[u8], wanted: &str) -> bool {
    let head = String::from_utf8_lossy(head);
    head.lines().any(|line| {
        let Some((name, value)) = line.split_once(':') else {
            return false;
        };
        let mut parameters = value.split(';').map(str::trim);
        name.eq_ignore_ascii_case("content-disposition")
            && parameters.any(|parameter| parameter == wanted)
    })
}

fn find(text: &[u8], from: usize, wanted: &[u8]) -> Option<usize> {
    let mut windows = text.get(from..)?.windows(wanted.len());
    windows
        .position(|window| window == wanted)
        .map(|at| from + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(body: &str) -> Option<&str> {
        body.get(only_part(body.as_bytes(), "b", "json")?)
    }

    #[test]
    fn the_only_part_with_a_name_is_found() {
        const HEAD: &str = "Content-Disposition: form-data; name=\"json\"";
        for (body, content) in [
            (
                format!("--b\r\n{HEAD}\r\n\r\n{{}}\r\n--b--\r\n"),
                Some("{}"),
            ),
            (format!("--b\r\n{HEAD}\r\n\r\n\r\n--b--"), Some("")),
            (
                format!(
                    "preamble\r\n--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\
                     name=\"json\"\r\n--b\r\nContent-Type: text/plain\r\n{HEAD}\r\n\r\n\
                     a\r\n\r\nb\r\n--b--"
                ),
                Some("a\r\n\r\nb"),
            ),
            // The part is there twice, has no end, has no head, or has another name.
            (
                format!("--b\r\n{HEAD}\r\n\r\n1\r\n--b\r\n{HEAD}\r\n\r\n2\r\n--b--"),
                None,
            ),
            (format!("--b\r\n{HEAD}\r\n\r\n{{}}\r\n"), None),
            (format!("--b\r\n{HEAD}\r\n--b--"), None),
            (format!("--b\r\n{HEAD}\r\n\r\n--b--"), None),
            (
                "--b\r\nContent-Disposition: form-data; name=\"jso\"\r\n\r\n{}\r\n--b--".into(),
                None,
            ),
            (String::new(), None),
        ] {
            assert_eq!(part(&body), content, "{body:?}");
        }
    }

    #[test]
    fn parts_without_an_end_of_their_heads_are_read_in_one_pass() {
        // A search beyond each part would scan the rest of the text for each of them.
        let many = "--b".repeat(500_000);
        assert_eq!(part(&many), None);
    }

    #[test]
    fn a_boundary_is_read_from_its_header() {
        for (content_type, found) in [
            ("multipart/form-data; boundary=abc", Some("abc")),
            (
                "Multipart/Form-Data; charset=utf-8; Boundary=\"abc\"",
                Some("abc"),
            ),
            ("multipart/form-data", None),
            ("multipart/form-data; boundary=", None),
            ("multipart/mixed; boundary=abc", None),
            ("application/json", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, http::HeaderValue::from_static(content_type));
            assert_eq!(boundary(&headers), found, "{content_type}");
        }
        assert_eq!(boundary(&HeaderMap::new()), None);
    }
}
