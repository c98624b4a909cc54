//! A request as a command for a POSIX shell or fish.

use super::super::html::visible;

/// The largest body that is part of the command, in bytes.
const MAX_BODY: usize = 8 * 1024;

/// The command that sends the request again, with placeholders for the host and the signature. If the body is large, is
/// not plain text, or is incomplete here, the command reads it from the file that the page offers for download.
pub(super) fn curl(
    method: &str,
    uri: &str,
    headers: &[(String, String)],
    signature_header: Option<&str>,
    body: Option<&[u8]>,
) -> String {
    // With `--globoff`, curl does not interpret brackets and braces in the query.
    let (method, url) = (quoted(method), quoted(&url(uri)));
    let mut command = format!("curl --globoff -X {method} \\\n  {url}");
    let mut add = |option: &str, value: &str| {
        command += &format!(" \\\n  {option} {}", quoted(value));
    };
    for (name, value) in headers {
        match &**value {
            // Without the semicolon, curl would leave out a header with an empty value.
            "" => add("-H", &format!("{name};")),
            value => add("-H", &format!("{name}: {value}")),
        }
    }
    if !headers.iter().any(|(name, _)| name == "content-type") {
        // The name without a value stops curl from adding a content type of its own.
        add("-H", "content-type:");
    }
    let signature_header = signature_header.unwrap_or("SIGNATURE-HEADER");
    add("-H", &format!("{signature_header}: SIGNATURE"));
    let text = body
        .filter(|body| body.len() <= MAX_BODY)
        .and_then(|body| std::str::from_utf8(body).ok())
        // The command contains the body only if the page shows it unchanged, because people copy what they see.
        .filter(|text| visible(text) == **text);
    match text {
        Some(text) => add("--data-raw", text),
        None => add("--data-binary", "@payload.bin"),
    }
    command
}

fn url(uri: &str) -> String {
    // The command contains only the path and the query of the URI, because the host in the URI is a machine behind a
    // proxy.
    let path = uri.split_once("://").map_or(uri, |(_, rest)| {
        rest.find('/')
            .map_or("/", |start| rest.get(start..).unwrap_or_default())
    });
    format!("https://HOST{path}")
}

/// Quotes a text for a POSIX shell and for fish. In fish, a backslash within single quotes can escape the next
/// character, so each backslash gets its own quoting.
fn quoted(text: &str) -> String {
    let mut quoted = "'".to_owned();
    for character in text.chars() {
        match character {
            '\'' => quoted += r"'\''",
            '\\' => quoted += r"'\\'",
            character => quoted.push(character),
        }
    }
    quoted + "'"
}

#[cfg(test)]
mod tests {
    use super::curl;

    #[test]
    fn a_request_is_a_command_that_a_posix_shell_and_fish_take_as_it_is() {
        let headers = [("content-type", "application/json"), ("x-empty", "")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let command = curl(
            "POST",
            "/hooks?a=1&b=$HOME",
            &headers,
            Some("x-hub-signature-256"),
            Some(br#"{"it's":"`id` $(id) \u0041 \'"}"#),
        );
        let expected = r#"curl --globoff -X 'POST' \
  'https://HOST/hooks?a=1&b=$HOME' \
  -H 'content-type: application/json' \
  -H 'x-empty;' \
  -H 'x-hub-signature-256: SIGNATURE' \
  --data-raw '{"it'\''s":"`id` $(id) '\\'u0041 '\\''\''"}'"#;
        assert_eq!(command, expected);
    }

    #[test]
    fn a_body_that_is_no_text_is_read_from_a_file() {
        for body in [
            Some(&b"\xff"[..]),
            Some(b"\0"),
            Some(b"a\r\n"),
            None,
            Some(&[b'a'; 9000]),
        ] {
            let command = curl("POST", "http://10.0.0.1:3000/hooks", &[], None, body);
            assert!(command.contains("'https://HOST/hooks'"), "{command}");
            assert!(command.contains("-H 'content-type:'"), "{command}");
            assert!(command.contains("-H 'SIGNATURE-HEADER: SIGNATURE'"));
            assert!(command.ends_with("--data-binary '@payload.bin'"));
        }
    }
}
