//! How a MAC's key is made of a secret.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use unicode_normalization::UnicodeNormalization;

use crate::provider::{Secret, SecretError};

/// How the key of a MAC is made of the secret that the provider shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Key {
    /// The secret itself, to the byte.
    Raw,
    /// The secret is the key in base64.
    Base64,
    /// The secret is the key in hexadecimal digits.
    Hex,
    /// The key is the SHA-1 of the secret.
    Sha1,
    /// The secret is a text, and the key its Unicode normalization form KD.
    Nfkd,
}

impl Key {
    /// The key, unless the secret is not one.
    pub(super) fn of(self, secret: &Secret) -> Option<Cow<'_, [u8]>> {
        let secret = secret.expose();
        let key = match self {
            Self::Raw => Cow::Borrowed(secret),
            Self::Base64 => BASE64.decode(secret).ok()?.into(),
            Self::Hex => hex::decode(secret).ok()?.into(),
            Self::Sha1 => {
                use sha1::Digest;
                sha1::Sha1::digest(secret).to_vec().into()
            }
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
                Self::Base64 => "it is not base64",
                Self::Hex => "it is not an even number of hexadecimal digits",
                Self::Nfkd => "it is not UTF-8",
                Self::Raw | Self::Sha1 => "it is blank",
            })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(key: Key, secret: &str) -> Option<String> {
        let secret = Secret::new(secret).ok()?;
        key.of(&secret).map(hex::encode)
    }

    #[test]
    fn keys_are_made_of_secrets() {
        assert_eq!(key(Key::Raw, "YQ==").as_deref(), Some("59513d3d"));
        assert_eq!(key(Key::Base64, "YQ==").as_deref(), Some("61"));
        assert_eq!(key(Key::Hex, "61fF").as_deref(), Some("61ff"));
        // FIPS 180, the one-block example.
        assert_eq!(
            key(Key::Sha1, "abc").as_deref(),
            Some("a9993e364706816aba3e25717850c26c9cd0d89d")
        );
        assert_eq!(key(Key::Nfkd, "plain").as_deref(), Some("706c61696e"));
        // An e and a combining acute accent, whether or not they were one character.
        assert_eq!(key(Key::Nfkd, "\u{e9}").as_deref(), Some("65cc81"));
        assert_eq!(key(Key::Nfkd, "e\u{301}").as_deref(), Some("65cc81"));
    }

    #[test]
    fn what_is_no_key_is_refused() -> Result<(), SecretError> {
        for (derivation, secret) in [
            (Key::Base64, &b"a"[..]),
            (Key::Base64, b"YQ"),
            (Key::Hex, b"abc"),
            (Key::Hex, b"xy"),
            (Key::Nfkd, b"\xff"),
        ] {
            assert!(derivation.check(&Secret::new(secret)?).is_err());
        }
        Ok(())
    }
}
