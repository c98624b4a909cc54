//! The only user of `hmac`, `sha2` and `ed25519-dalek`.

use hmac::digest::CtOutput;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// Length in bytes of an HMAC-SHA256.
pub(crate) const MAC_LEN: usize = 32;

/// The MAC that a request should carry. It can only be compared, in constant time.
pub(crate) struct ExpectedMac(CtOutput<Hmac<Sha256>>);

impl ExpectedMac {
    /// The HMAC-SHA256 of `parts`, one after the other, under `key`.
    pub(crate) fn of<'a>(key: &[u8], parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        #[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
        let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length is a valid HMAC key");
        for part in parts {
            mac.update(part);
        }
        Self(mac.finalize())
    }

    /// Compares in constant time.
    pub(crate) fn matches(&self, presented: [u8; MAC_LEN]) -> bool {
        self.0 == CtOutput::new(presented.into())
    }
}

/// The HMAC-SHA256 of `parts`, one after the other, under `key`: for signing, never for
/// comparing.
#[cfg(feature = "testing")]
pub(crate) fn hmac_sha256<'a>(
    key: &[u8],
    parts: impl IntoIterator<Item = &'a [u8]>,
) -> [u8; MAC_LEN] {
    ExpectedMac::of(key, parts).0.into_bytes().into()
}

/// Whether an ed25519 signature is that of `message` by the owner of the public key, which
/// must not be a weak one.
#[cfg(feature = "ed25519")]
pub(crate) fn is_ed25519_signature(
    public: &[u8; 32],
    message: &[u8],
    signature: &[u8; 64],
) -> bool {
    ed25519_dalek::VerifyingKey::from_bytes(public)
        .is_ok_and(|key| key.verify_strict(message, &signature.into()).is_ok())
}

/// A SHA-256.
pub(crate) type Sha256Digest = [u8; 32];

/// The SHA-256 of `parts`, each preceded by its length, so that no two lists of parts
/// have the same.
pub(crate) fn sha256_of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Sha256Digest {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    digest.finalize().into()
}

/// The SHA-256 of `data` as 64 lower-case hexadecimal digits.
pub(crate) fn sha256_hex(data: &[u8]) -> String {
    hex::encode(Sha256::digest(data))
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
            assert!(mac.matches(decode(expected)));
            let mut wrong = decode::<MAC_LEN>(expected);
            wrong[31] ^= 1;
            assert!(!mac.matches(wrong));
        }
    }

    /// FIPS 180-2, the one-block example.
    #[test]
    fn sha256_agrees_with_fips_180() {
        assert_eq!(
            sha256_hex(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
