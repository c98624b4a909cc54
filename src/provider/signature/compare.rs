//! Comparison of MACs and secrets in constant time.

use hmac::digest::array::Array;
use hmac::digest::{CtOutput, OutputSizeUser};

use super::keyed::hmac;
use super::mac::{ExpectedMac, Hash};

/// Whether a MAC is the expected one. Only its length, which is no secret, is looked at first.
pub(super) fn is_equal<M: OutputSizeUser>(expected: &CtOutput<M>, presented: &[u8]) -> bool {
    Array::try_from(presented).is_ok_and(|presented| *expected == CtOutput::new(presented))
}

/// Whether two secret texts or MACs are the same. The time depends on their lengths only.
///
/// It compares their HMACs under one key. These have the same length, and tell nothing about
/// where the texts differ.
pub(in crate::provider) fn is_same(expected: &[u8], presented: &[u8]) -> bool {
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
