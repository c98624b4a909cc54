//! Comparison of secrets, and of MACs as texts, in constant time. MACs as bytes are compared in `mac.rs`.

use super::digests::hmac;
use super::mac::{ExpectedMac, Hash};

/// Whether two secret texts or MACs are the same. The time it takes depends only on their lengths.
///
/// HMACs of the two texts under one key are compared. The HMACs have the same length, and reveal nothing about where
/// the texts differ.
pub(crate) fn is_same(expected: &[u8], presented: &[u8]) -> bool {
    let presented = hmac(Hash::Sha256, expected, [presented]);
    ExpectedMac::of(expected, [expected]).matches(&presented)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_texts_are_the_same() {
        assert!(is_same(b"", b""));
        assert!(is_same(b"secret", b"secret"));
        for other in ["", "secre", "secreT", "secret\0", "secrets"] {
            assert!(!is_same(b"secret", other.as_bytes()), "{other:?}");
            assert!(!is_same(other.as_bytes(), b"secret"), "{other:?}");
        }
    }
}
