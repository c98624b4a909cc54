//! Makes texts from requests and files safe to show on a terminal.

/// Escapes invisible characters, and characters that would move the cursor. Quotes and backslashes stay.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '"' | '\'' | '\\' => shown.push(char),
            char => shown.extend(char.escape_debug()),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_escaped() {
        assert_eq!(visible("a \"é\" '\\"), "a \"é\" '\\");
        let hidden = "\u{1b}[2J\r\n\u{feff}\u{202e}\u{9b}";
        let shown = r"\u{1b}[2J\r\n\u{feff}\u{202e}\u{9b}";
        assert_eq!(visible(hidden), shown);
    }
}
