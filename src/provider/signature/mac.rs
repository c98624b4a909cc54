//! HMACs, by their hash functions.

use hmac::digest::array::Array;
use hmac::digest::{CtOutput, OutputSizeUser};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Length in bytes of an HMAC-SHA256.
pub(super) const MAC_LEN: usize = 32;

/// The hash function of an HMAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hash {
    /// MD5, for providers that have nothing better. As an HMAC it is not known to be broken, but no
    /// new protocol should use it. Feature `md5`.
    #[cfg(feature = "md5")]
    Md5,
    /// SHA-1, for providers that have nothing better. As an HMAC it is not known to be broken.
    /// Feature `sha1`.
    #[cfg(feature = "sha1")]
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

impl Hash {
    /// The length of a MAC in bytes.
    pub(super) fn len(self) -> usize {
        match self {
            #[cfg(feature = "md5")]
            Self::Md5 => 16,
            #[cfg(feature = "sha1")]
            Self::Sha1 => 20,
            Self::Sha256 => MAC_LEN,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            #[cfg(feature = "md5")]
            Self::Md5 => "MD5",
            #[cfg(feature = "sha1")]
            Self::Sha1 => "SHA1",
            Self::Sha256 => "SHA256",
            Self::Sha384 => "SHA384",
            Self::Sha512 => "SHA512",
        }
    }
}

/// An HMAC that is being computed.
pub(super) enum MacBuilder {
    #[cfg(feature = "md5")]
    Md5(Hmac<md5::Md5>),
    #[cfg(feature = "sha1")]
    Sha1(Hmac<sha1::Sha1>),
    Sha256(Hmac<Sha256>),
    Sha384(Hmac<sha2::Sha384>),
    Sha512(Hmac<sha2::Sha512>),
}

impl MacBuilder {
    pub(super) fn new(hash: Hash, key: &[u8]) -> Self {
        match hash {
            #[cfg(feature = "md5")]
            Hash::Md5 => Self::Md5(keyed(key)),
            #[cfg(feature = "sha1")]
            Hash::Sha1 => Self::Sha1(keyed(key)),
            Hash::Sha256 => Self::Sha256(keyed(key)),
            Hash::Sha384 => Self::Sha384(keyed(key)),
            Hash::Sha512 => Self::Sha512(keyed(key)),
        }
    }

    pub(super) fn update(&mut self, part: &[u8]) {
        match self {
            #[cfg(feature = "md5")]
            Self::Md5(mac) => mac.update(part),
            #[cfg(feature = "sha1")]
            Self::Sha1(mac) => mac.update(part),
            Self::Sha256(mac) => mac.update(part),
            Self::Sha384(mac) => mac.update(part),
            Self::Sha512(mac) => mac.update(part),
        }
    }

    pub(super) fn finish(self) -> ExpectedMac {
        match self {
            #[cfg(feature = "md5")]
            Self::Md5(mac) => ExpectedMac::Md5(mac.finalize()),
            #[cfg(feature = "sha1")]
            Self::Sha1(mac) => ExpectedMac::Sha1(mac.finalize()),
            Self::Sha256(mac) => ExpectedMac::Sha256(mac.finalize()),
            Self::Sha384(mac) => ExpectedMac::Sha384(mac.finalize()),
            Self::Sha512(mac) => ExpectedMac::Sha512(mac.finalize()),
        }
    }
}

#[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
fn keyed<M: KeyInit>(key: &[u8]) -> M {
    M::new_from_slice(key).expect("any length is a valid HMAC key")
}

/// The MAC that a request should carry. It can only be compared, in constant time.
pub(super) enum ExpectedMac {
    #[cfg(feature = "md5")]
    Md5(CtOutput<Hmac<md5::Md5>>),
    #[cfg(feature = "sha1")]
    Sha1(CtOutput<Hmac<sha1::Sha1>>),
    Sha256(CtOutput<Hmac<Sha256>>),
    Sha384(CtOutput<Hmac<sha2::Sha384>>),
    Sha512(CtOutput<Hmac<sha2::Sha512>>),
}

impl ExpectedMac {
    /// The HMAC-SHA256 of the concatenated `parts` under `key`.
    pub(super) fn of<'a>(key: &[u8], parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        Self::with(Hash::Sha256, key, parts)
    }

    /// The HMAC of the concatenated `parts` under `key`.
    pub(super) fn with<'a>(
        hash: Hash,
        key: &[u8],
        parts: impl IntoIterator<Item = &'a [u8]>,
    ) -> Self {
        let mut mac = MacBuilder::new(hash, key);
        for part in parts {
            mac.update(part);
        }
        mac.finish()
    }

    /// Compares in constant time.
    pub(super) fn matches(&self, presented: &[u8]) -> bool {
        match self {
            #[cfg(feature = "md5")]
            Self::Md5(mac) => is_equal(mac, presented),
            #[cfg(feature = "sha1")]
            Self::Sha1(mac) => is_equal(mac, presented),
            Self::Sha256(mac) => is_equal(mac, presented),
            Self::Sha384(mac) => is_equal(mac, presented),
            Self::Sha512(mac) => is_equal(mac, presented),
        }
    }

    /// The bytes: for signing, never for comparing.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        match self {
            #[cfg(feature = "md5")]
            Self::Md5(mac) => mac.into_bytes().to_vec(),
            #[cfg(feature = "sha1")]
            Self::Sha1(mac) => mac.into_bytes().to_vec(),
            Self::Sha256(mac) => mac.into_bytes().to_vec(),
            Self::Sha384(mac) => mac.into_bytes().to_vec(),
            Self::Sha512(mac) => mac.into_bytes().to_vec(),
        }
    }
}

/// The HMAC-SHA256 of the concatenated `parts` under `key`: for signing, never for comparing.
pub(super) fn hmac_sha256<'a>(key: &[u8], parts: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    ExpectedMac::of(key, parts).into_bytes()
}

/// Whether a MAC is the expected one. Only its length, which is not secret, is checked first.
fn is_equal<M: OutputSizeUser>(expected: &CtOutput<M>, presented: &[u8]) -> bool {
    Array::try_from(presented).is_ok_and(|presented| *expected == CtOutput::new(presented))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode<const N: usize>(text: &str) -> [u8; N] {
        let mut bytes = [0; N];
        assert_eq!(hex::decode_to_slice(text, &mut bytes), Ok(()));
        bytes
    }

    /// RFC 4231, test cases 1, 2 and 6 (a key longer than the block).
    #[test]
    fn hmac_agrees_with_rfc_4231() {
        let long_key = [0xaa; 131];
        let cases: [(&[u8], &[u8], &str); 3] = [
            (
                &[0x0b; 20],
                b"Hi There",
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
            ),
            (
                b"Jefe",
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                &long_key,
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ];
        for (key, data, expected) in cases {
            let (head, tail) = data.split_at(data.len() / 2);
            let mac = ExpectedMac::of(key, [head, tail]);
            assert!(mac.matches(&decode::<MAC_LEN>(expected)));
            let mut wrong = decode::<MAC_LEN>(expected);
            wrong[31] ^= 1;
            assert!(!mac.matches(&wrong));
            assert!(!mac.matches(&wrong[..31]));
        }
    }

    /// RFC 2202 and RFC 4231, test case 2.
    #[test]
    fn the_hash_functions_agree_with_their_rfcs() {
        for (hash, expected) in [
            #[cfg(feature = "md5")]
            (Hash::Md5, "750c783e6ab0b503eaa86e310a5db738"),
            #[cfg(feature = "sha1")]
            (Hash::Sha1, "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"),
            (
                Hash::Sha256,
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                Hash::Sha384,
                "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e\
                 8e2240ca5e69e2c78b3239ecfab21649",
            ),
            (
                Hash::Sha512,
                "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554\
                 9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737",
            ),
        ] {
            let mut mac = MacBuilder::new(hash, b"Jefe");
            mac.update(b"what do ya want ");
            mac.update(b"for nothing?");
            let mac = mac.finish().into_bytes();
            assert_eq!(hex::encode(&mac), expected);
            assert_eq!(mac.len(), hash.len());
        }
    }
}
