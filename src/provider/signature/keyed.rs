//! MACs and digests for schemes with code of their own, and comparison in constant time.

use sha2::{Digest, Sha256};

use super::mac::ExpectedMac;
pub(in crate::provider) use super::mac::Hash;
use crate::digest::sha256_of;

/// The HMAC of the concatenated `parts`.
pub(in crate::provider) fn hmac<'a>(
    hash: Hash,
    key: &[u8],
    parts: impl IntoIterator<Item = &'a [u8]>,
) -> Vec<u8> {
    ExpectedMac::with(hash, key, parts).into_bytes()
}

/// Whether two secret texts or MACs are the same. The time depends on their lengths only.
///
/// It compares their HMACs under one key. These have the same length, and tell nothing about
/// where the texts differ.
pub(in crate::provider) fn is_same(expected: &[u8], presented: &[u8]) -> bool {
    let presented = hmac(Hash::Sha256, expected, [presented]);
    ExpectedMac::of(expected, [expected]).matches(&presented)
}

/// The SHA-1 of `data`, from which one provider derives its key.
#[cfg(feature = "sha1")]
pub(in crate::provider) fn sha1(data: &[u8]) -> Vec<u8> {
    sha1::Sha1::digest(data).to_vec()
}

/// The SHA-256 of the concatenated `parts`.
pub(in crate::provider) fn sha256<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update(part);
    }
    digest.finalize().to_vec()
}

/// A digest of what makes two requests the same delivery where the provider sends no id: the path
/// with the query, and the body.
pub(in crate::provider) fn request_digest(path_and_query: &str, body: &[u8]) -> String {
    hex::encode(sha256_of([path_and_query.as_bytes(), body]))
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
