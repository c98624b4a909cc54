//! MACs and digests for schemes with code of their own, and comparison in constant time.

use hmac::digest::CtOutput;
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha384, Sha512};

use super::scheme::SignedRequest;
use crate::digest::sha256_of;

/// Computes a HMAC with a hash that is named at compile time.
macro_rules! hmac_of {
    ($hash:ty, $key:expr, $parts:expr) => {{
        #[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
        let mut mac = Hmac::<$hash>::new_from_slice($key).expect("any length is a valid HMAC key");
        for part in $parts {
            mac.update(part);
        }
        mac.finalize()
    }};
}

/// The hash of a HMAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::provider) enum HmacHash {
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

/// The HMAC of the concatenated `parts`.
pub(in crate::provider) fn hmac<'a>(
    hash: HmacHash,
    key: &[u8],
    parts: impl IntoIterator<Item = &'a [u8]>,
) -> Vec<u8> {
    match hash {
        HmacHash::Sha1 => hmac_of!(Sha1, key, parts).into_bytes().to_vec(),
        HmacHash::Sha256 => hmac_of!(Sha256, key, parts).into_bytes().to_vec(),
        HmacHash::Sha384 => hmac_of!(Sha384, key, parts).into_bytes().to_vec(),
        HmacHash::Sha512 => hmac_of!(Sha512, key, parts).into_bytes().to_vec(),
    }
}

/// Whether two secret texts or MACs are the same. The time depends on their lengths only.
///
/// It compares their HMACs under one key. These have the same length, and tell nothing about
/// where the texts differ.
pub(in crate::provider) fn is_same(expected: &[u8], presented: &[u8]) -> bool {
    let of = |text: &[u8]| -> CtOutput<Hmac<Sha256>> { hmac_of!(Sha256, expected, [text]) };
    of(expected) == of(presented)
}

/// The SHA-1 of `data`, from which one provider derives its key.
pub(in crate::provider) fn sha1(data: &[u8]) -> Vec<u8> {
    Sha1::digest(data).to_vec()
}

/// The SHA-256 of the concatenated `parts`.
pub(in crate::provider) fn sha256<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update(part);
    }
    digest.finalize().to_vec()
}

/// A digest of what makes two requests the same delivery where the provider sends no id: the path,
/// the query and the body.
pub(in crate::provider) fn request_digest(request: &SignedRequest<'_>) -> String {
    request_digest_of(request.path_and_query(), request.body())
}

pub(in crate::provider) fn request_digest_of(place: &str, body: &[u8]) -> String {
    hex::encode(sha256_of([place.as_bytes(), body]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 2202 and RFC 4231, test case 2.
    #[test]
    fn hmac_agrees_with_the_rfcs() {
        for (hash, expected) in [
            (HmacHash::Sha1, "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"),
            (
                HmacHash::Sha256,
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                HmacHash::Sha384,
                "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e\
                 8e2240ca5e69e2c78b3239ecfab21649",
            ),
            (
                HmacHash::Sha512,
                "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554\
                 9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737",
            ),
        ] {
            let parts = [b"what do ya want ".as_slice(), b"for nothing?"];
            assert_eq!(hex::encode(hmac(hash, b"Jefe", parts)), expected);
        }
    }

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
