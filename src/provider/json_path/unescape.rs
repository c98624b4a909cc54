//! The text of a JSON string.

/// The text of a string as it is written in valid JSON. `None` if the JSON is another value, or if the string is
/// not valid Unicode.
///
/// This takes no more memory than the string itself. `serde_json` takes up to three times as much, because it grows
/// a buffer by doubling it, and copies it at the end.
pub(crate) fn unescape(json: &str) -> Option<String> {
    let mut text = String::with_capacity(json.len());
    unescape_into(json, &mut text)?;
    Some(text)
}

/// Appends the text of a JSON string to `text`.
pub(crate) fn unescape_into(json: &str, text: &mut String) -> Option<()> {
    let mut rest = json.strip_prefix('"')?.strip_suffix('"')?;
    while let Some((before, escape)) = rest.split_once('\\') {
        text.push_str(before);
        let mut chars = escape.chars();
        let kind = chars.next()?;
        rest = chars.as_str();
        text.push(match kind {
            '"' | '\\' | '/' => kind,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => code_point(&mut rest)?,
            _ => return None,
        });
    }
    text.push_str(rest);
    Some(())
}

/// The character that one or two UTF-16 code units encode.
fn code_point(rest: &mut &str) -> Option<char> {
    let first = code_unit(rest)?;
    if let Some(character) = char::from_u32(first.into()) {
        return Some(character);
    }
    *rest = rest.strip_prefix("\\u")?;
    let second = code_unit(rest)?;
    char::decode_utf16([first, second]).next()?.ok()
}

fn code_unit(rest: &mut &str) -> Option<u16> {
    let (digits, after) = rest.split_at_checked(4)?;
    *rest = after;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_is_read_as_serde_json_reads_it() {
        for json in [
            r#""""#,
            r#""plain""#,
            r#""é𝄞""#,
            r#""\"\\\/\b\f\n\r\t""#,
            r#""\u0041\u00e9\u20AC\ud834\udd1e\\u0041""#,
            r#""a\\""#,
            // Not valid Unicode.
            r#""\ud834""#,
            r#""\ud834x""#,
            r#""\ud834\n""#,
            r#""\ud834\u0041""#,
            r#""\udd1e\ud834""#,
            r#""\u0000""#,
            "null",
            "1",
            "{}",
            r#"["a"]"#,
        ] {
            let expected: Option<String> = serde_json::from_str(json).ok();
            assert_eq!(unescape(json), expected, "{json}");
        }
    }
}
