//! A delivery's payload, as text.

use std::borrow::Cow;

use maud::{Markup, html};

use super::invisible::visible;

/// A payload, indented if it looks like JSON. Apart from white space, it is not changed: numbers
/// and strings are shown as they arrived.
pub(in crate::dashboard) fn code(payload: &[u8]) -> Markup {
    let text = String::from_utf8_lossy(payload);
    let looks_like_json = text.trim_start().starts_with(['{', '[']);
    let text = match looks_like_json {
        true => Cow::Owned(indent(&text)),
        false => text,
    };
    html! {
        pre.payload tabindex="0" role="region" aria-label="Payload" { code { (visible(&text)) } }
    }
}

/// The text in place of a payload that is not shown.
pub(in crate::dashboard) fn hidden_code(why: &str) -> Markup {
    html! { p.muted { (why) } }
}

/// Adds white space between the parts of a JSON text. The text may be cut off, or may not be valid
/// JSON.
fn indent(json: &str) -> String {
    /// Deeper levels are not indented further.
    const DEEPEST: usize = 32;
    let mut indented = String::with_capacity(json.len() * 2);
    let mut depth = 0_usize;
    let (mut in_string, mut escaped) = (false, false);
    let mut characters = json.chars().peekable();
    while let Some(character) = characters.next() {
        if in_string {
            indented.push(character);
            in_string = escaped || character != '"';
            escaped = !escaped && character == '\\';
            continue;
        }
        let line = |depth: usize, indented: &mut String| {
            indented.push('\n');
            indented.extend(std::iter::repeat_n("  ", depth.min(DEEPEST)));
        };
        match character {
            '"' => {
                in_string = true;
                indented.push(character);
            }
            '{' | '[' => {
                indented.push(character);
                while characters
                    .next_if(|next| next.is_ascii_whitespace())
                    .is_some()
                {}
                if let Some(end) = characters.next_if(|next| matches!(next, '}' | ']')) {
                    indented.push(end);
                } else {
                    depth += 1;
                    line(depth, &mut indented);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(depth, &mut indented);
                indented.push(character);
            }
            ',' => {
                indented.push(character);
                line(depth, &mut indented);
            }
            ':' => indented.push_str(": "),
            character if character.is_ascii_whitespace() => {}
            character => indented.push(character),
        }
    }
    indented
}

#[cfg(test)]
mod tests {
    use super::indent;

    #[test]
    fn json_is_indented_and_otherwise_as_it_came() {
        let json = r#"{"id":123456789012345678901234567890,"a":[1.10,-0,{}, [ ]],"s":"{\",\\"}"#;
        let expected = r#"{
  "id": 123456789012345678901234567890,
  "a": [
    1.10,
    -0,
    {},
    []
  ],
  "s": "{\",\\"
}"#;
        assert_eq!(indent(json), expected);
    }

    #[test]
    fn what_is_cut_off_or_no_json_is_indented_as_far_as_it_goes() {
        assert_eq!(indent(r#"{"a":"b"#), "{\n  \"a\": \"b");
        assert_eq!(indent("]]}"), "\n]\n]\n}");
        // Deep nesting neither takes quadratic space nor panics.
        assert!(indent(&"[".repeat(10_000)).len() < 1_000_000);
    }
}
