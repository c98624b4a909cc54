//! Message authentication codes and asymmetric signatures: the only user of `hmac` and
//! `ed25519-dalek`.

use hmac::digest::CtOutput;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Length in bytes of an HMAC-SHA256.
pub(super) const MAC_LEN: usize = 32;

/// The MAC that a request should carry. It can only be compared, in constant time.
pub(super) struct ExpectedMac(CtOutput<Hmac<Sha256>>);

impl ExpectedMac {
    /// The HMAC-SHA256 of the concatenated `parts` under `key`.
    pub(super) fn of<'a>(key: &[u8], parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        #[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
        let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length is a valid HMAC key");
        for part in parts {
            mac.update(part);
        }
        Self(mac.finalize())
    }

    /// Compares in constant time.
    pub(super) fn matches(&self, presented: [u8; MAC_LEN]) -> bool {
        self.0 == CtOutput::new(presented.into())
    }
}

/// The HMAC-SHA256 of the concatenated `parts` under `key`: for signing, never for comparing.
pub(super) fn hmac_sha256<'a>(
    key: &[u8],
    parts: impl IntoIterator<Item = &'a [u8]>,
) -> [u8; MAC_LEN] {
    ExpectedMac::of(key, parts).0.into_bytes().into()
}

/// Whether `signature` is a valid ed25519 signature of `message`. Weak public keys are refused.
#[cfg(feature = "ed25519")]
pub(super) fn is_ed25519_signature(
    public: &[u8; 32],
    message: &[u8],
    signature: &[u8; 64],
) -> bool {
    ed25519_dalek::VerifyingKey::from_bytes(public)
        .is_ok_and(|key| key.verify_strict(message, &signature.into()).is_ok())
}

/// The ed25519 signature of `message` with the private key of `seed`.
#[cfg(feature = "ed25519")]
pub(super) fn ed25519_signature(seed: &[u8; 32], message: &[u8]) -> [u8; 64] {
    use ed25519_dalek::Signer;
    ed25519_dalek::SigningKey::from_bytes(seed)
        .sign(message)
        .to_bytes()
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
}
