//! How a MAC's key is made from a secret.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use unicode_normalization::UnicodeNormalization;

use crate::provider::{Secret, SecretError};

/// How the key of a MAC is made from the secret that the provider shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Key {
    /// The exact bytes of the secret.
    Raw,
    /// The secret is the key in base64.
    Base64,
    /// The secret is the key in hexadecimal digits.
    Hex,
}

/// How a key is made, including the ways that only presets need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Derivation {
    By(Key),
    /// The secret is a text, and the key is its Unicode normalization form KD.
    Nfkd,
    /// The secret is a text for HTML, and the key is that text with `&amp;`, `&lt;`, `&gt;`,
    /// `&quot;` and the numeric references to these characters and to `'` decoded, as WordPress
    /// does.
    HtmlText,
}

impl Derivation {
    /// The key. `None` if the secret is not a key of this kind.
    pub(super) fn of(self, secret: &Secret) -> Option<Cow<'_, [u8]>> {
        let secret = secret.expose();
        let key = match self {
            Self::By(Key::Raw) => Cow::Borrowed(secret),
            Self::By(Key::Base64) => BASE64.decode(secret).ok()?.into(),
            Self::By(Key::Hex) => hex::decode(secret).ok()?.into(),
            Self::HtmlText if !secret.contains(&b'&') => Cow::Borrowed(secret),
            Self::HtmlText => unescaped(std::str::from_utf8(secret).ok()?)
                .into_bytes()
                .into(),
            Self::Nfkd if secret.is_ascii() => Cow::Borrowed(secret),
            Self::Nfkd => {
                let text: String = std::str::from_utf8(secret).ok()?.nfkd().collect();
                text.into_bytes().into()
            }
        };
        (!key.is_empty()).then_some(key)
    }

    pub(super) fn check(self, secret: &Secret) -> Result<(), SecretError> {
        match self.of(secret) {
            Some(_) => Ok(()),
            None => Err(SecretError::new(match self {
                Self::By(Key::Raw) => "it is blank",
                Self::By(Key::Base64) => "it is not base64",
                Self::By(Key::Hex) => "it is not an even number of hexadecimal digits",
                Self::Nfkd | Self::HtmlText => "it is not UTF-8",
            })),
        }
    }
}

/// Decodes the character references that WordPress knows.
fn unescaped(mut text: &str) -> String {
    let mut decoded = String::new();
    while let Some((before, rest)) = text.split_once('&') {
        decoded.push_str(before);
        let reference = rest.split_once(';');
        match reference.and_then(|(name, rest)| Some((character(name)?, rest))) {
            Some((character, rest)) => {
                decoded.push(character);
                text = rest;
            }
            None => {
                decoded.push('&');
                text = rest;
            }
        }
    }
    decoded.push_str(text);
    decoded
}

fn character(name: &str) -> Option<char> {
    let number = |text: &str, radix| {
        let digits = text.chars().all(|digit| digit.is_digit(radix));
        digits.then(|| u32::from_str_radix(text, radix).ok())?
    };
    match name {
        "amp" => return Some('&'),
        "lt" => return Some('<'),
        "gt" => return Some('>'),
        "quot" => return Some('"'),
        _ => {}
    }
    let reference = name.strip_prefix('#')?;
    let hexadecimal = reference.strip_prefix(['x', 'X']);
    match hexadecimal {
        Some(text) => number(text, 16).filter(|code| matches!(code, 0x22 | 0x26 | 0x27)),
        None => number(reference, 10).filter(|code| matches!(code, 34 | 38 | 39 | 60 | 62)),
    }
    .and_then(char::from_u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    use Derivation::{By, HtmlText, Nfkd};

    fn key(derivation: Derivation, secret: &str) -> Option<String> {
        let secret = Secret::new(secret).ok()?;
        derivation.of(&secret).map(hex::encode)
    }

    #[test]
    fn keys_are_made_of_secrets() {
        assert_eq!(key(By(Key::Raw), "YQ==").as_deref(), Some("59513d3d"));
        assert_eq!(key(By(Key::Base64), "YQ==").as_deref(), Some("61"));
        assert_eq!(key(By(Key::Hex), "61fF").as_deref(), Some("61ff"));
        assert_eq!(key(Nfkd, "plain").as_deref(), Some("706c61696e"));
        // An e and a combining acute accent, whether or not they were written as one character.
        assert_eq!(key(Nfkd, "\u{e9}").as_deref(), Some("65cc81"));
        assert_eq!(key(Nfkd, "e\u{301}").as_deref(), Some("65cc81"));
        assert_eq!(key(HtmlText, "a&amp;b").as_deref(), Some("612662"));
        assert_eq!(key(HtmlText, "a&b").as_deref(), Some("612662"));
    }

    #[test]
    fn character_references_are_decoded_once() {
        for (text, decoded) in [
            ("woo <secret> & more", "woo <secret> & more"),
            ("&lt;a&gt; &amp; &quot;b&quot;", "<a> & \"b\""),
            ("&#039;&#39;&#x27;&#X0027;", "''''"),
            ("&#60;&#062;&#38;&#x26;&#34;&#x22;", "<>&&\"\""),
            ("&amp;lt;", "&lt;"),
            (
                "&apos;&#65;&#x3c;&#+38;&;&#;&#x;&amp",
                "&apos;&#65;&#x3c;&#+38;&;&#;&#x;&amp",
            ),
        ] {
            assert_eq!(unescaped(text), decoded);
        }
    }

    #[test]
    fn what_is_no_key_is_refused() -> Result<(), SecretError> {
        for (derivation, secret) in [
            (By(Key::Base64), &b"a"[..]),
            (By(Key::Base64), b"YQ"),
            (By(Key::Hex), b"abc"),
            (By(Key::Hex), b"xy"),
            (Nfkd, b"\xff"),
            (HtmlText, b"&\xff"),
        ] {
            assert!(derivation.check(&Secret::new(secret)?).is_err());
        }
        Ok(())
    }
}
