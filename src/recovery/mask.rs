//! Masks the words of a reason that may come from a payload, wherever reasons are shown. The tables store the reasons
//! unmasked. `kept_request.rs` decides which headers of a request are stored at all.

/// The replacement for a quoted text.
const TEXT: char = '…';

/// A reason of at least this length may have been cut off. A shorter reason was not.
const CUT: usize = 200;

/// The replacement for digits.
const DIGITS: char = '#';

/// Masks quoted texts, mail addresses and digits in a reason. Parser errors quote what they did not expect, and
/// messages quote the values that they are about.
///
/// A quoted text may itself contain quotes, and it is better to mask too much. So a quoted text reaches to the last
/// quote of its kind, or to the end if the reason may be cut off. An apostrophe within a word does not start a quoted
/// text, but an apostrophe after a prefix does, as in `b'..'`.
pub(crate) fn masked(reason: &str) -> String {
    let mut masked = String::with_capacity(reason.len());
    let is_whole = reason.chars().count() < CUT;
    let (mut rest, mut word) = (reason, String::new());
    while let Some(character) = rest.chars().next() {
        let after = rest.get(character.len_utf8()..).unwrap_or_default();
        let begins_quote = character != '\'' || matches!(&*word, "" | "b" | "u" | "r" | "B" | "U");
        rest = match closing(character) {
            Some(end) if begins_quote => {
                masked.push(character);
                masked.push(TEXT);
                match after.rfind(end).filter(|_| is_whole) {
                    Some(last) => after.get(last..).map_or("", |last| {
                        masked.push(end);
                        last.get(end.len_utf8()..).unwrap_or_default()
                    }),
                    None => "",
                }
            }
            _ if character.is_numeric() => {
                masked.push(DIGITS);
                after.trim_start_matches(char::is_numeric)
            }
            _ => {
                masked.push(character);
                after
            }
        };
        match character.is_alphanumeric() {
            true => word.push(character),
            false => word.clear(),
        }
    }
    without_addresses(&masked)
}

/// Masks words that may be mail addresses.
fn without_addresses(text: &str) -> String {
    if !text.contains('@') {
        return text.to_owned();
    }
    let words = text.split(' ').map(|word| match word.contains('@') {
        true => TEXT.to_string(),
        false => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The quote that ends a quoted text, if this character starts one.
fn closing(character: char) -> Option<char> {
    match character {
        '"' | '\'' | '`' => Some(character),
        '“' | '„' => Some('”'),
        '‘' => Some('’'),
        '‚' => Some('‘'),
        '«' => Some('»'),
        '»' => Some('«'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::masked;

    #[test]
    fn quoted_texts_and_digits_are_masked() {
        for (reason, expected) in [
            ("the ledger is away", "the ledger is away"),
            ("the handler answered 500", "the handler answered #"),
            (
                r#"invalid type: string "4111 \"1111\" Ada", expected u64 at line 1"#,
                r#"invalid type: string "…", expected u# at line #"#,
            ),
            (
                "unknown variant `Ada`, expected `paid`",
                "unknown variant `…`",
            ),
            ("no customer 'O'Brien, Mary' here", "no customer '…' here"),
            (
                r#"bad payload: "{"name":"Ada","age":7}" of 7"#,
                r#"bad payload: "…" of #"#,
            ),
            ("Key (email)=(ada@example.com) exists", "Key … exists"),
            ("couldn't find customer 'Ada'", "couldn't find customer '…'"),
            ("no such name: “Ada” or „Bob”", "no such name: “…”"),
            ("unknown: b'Ada' of »Bob«", "unknown: b'…' of »…«"),
            // Cut off within the quotes.
            ("invalid type: string \"4111 11", "invalid type: string \"…"),
            ("card ４１１１", "card #"),
        ] {
            assert_eq!(masked(reason), expected);
        }
        // The last quote of a reason that is cut off may be the one that starts a text.
        let long = format!(r#"{{"detail":"Ada {}"#, "x".repeat(200));
        assert_eq!(masked(&long), r#"{"…"#);
    }
}
