//! Spells out characters in a sender's text that a reader would not see.

use std::borrow::Cow;

/// Spells out characters that are invisible, or that change how their neighbours look: control characters, marks for
/// the writing direction, zero-width spaces, and letters that look like a space. The template escapes HTML.
pub(in crate::dashboard) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_invisible) {
        return Cow::Borrowed(text);
    }
    let mut visible = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_invisible(character) {
            visible.push_str(&format!("⟨U+{:04X}⟩", u32::from(character)));
        } else {
            visible.push(character);
        }
    }
    Cow::Owned(visible)
}

fn is_invisible(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}' => true,
        // Hangul fillers, and the blank Braille pattern.
        '\u{115f}' | '\u{1160}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}' => true,
        // Interlinear annotations.
        '\u{fff9}'..='\u{fffb}' => true,
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        // Unicode tags, which can carry hidden text.
        '\u{e0000}'..='\u{e007f}' => true,
        character => character.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::visible;

    #[test]
    fn what_cannot_be_seen_is_spelt_out() {
        assert_eq!(visible("evt_1\n\tß 漢"), "evt_1\n\tß 漢");
        for character in ['\u{115f}', '\u{180e}', '\u{2800}', '\u{3164}', '\u{fff9}'] {
            assert_ne!(visible(&character.to_string()), character.to_string());
        }
        assert_eq!(visible("a\0b\u{202e}c\r"), "a⟨U+0000⟩b⟨U+202E⟩c⟨U+000D⟩");
    }
}
