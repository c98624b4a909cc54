//! RSA PKCS #1 v1.5: the only user of `rsa`.

use rsa::pkcs8::{DecodePrivateKey, DecodePublicKey};
use rsa::{Pkcs1v15Sign, RsaPrivateKey, RsaPublicKey};
use sha2::{Digest, Sha256, Sha512};

/// The hash of a signature.
#[derive(Clone, Copy, Debug)]
pub(in crate::provider) enum RsaHash {
    Sha256,
    Sha512,
}

/// What comes before the hash in a signature: its algorithm, in DER (RFC 8017, section 9.2).
const SHA_256: [u8; 19] =
    *b"\x30\x31\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x05\x00\x04\x20";
const SHA_512: [u8; 19] =
    *b"\x30\x51\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x03\x05\x00\x04\x40";

impl RsaHash {
    /// The padding and the hash of a message. `rsa` has an older version of the hash functions, so
    /// it is given their results.
    fn of(self, message: &[u8]) -> (Pkcs1v15Sign, Vec<u8>) {
        let (prefix, hash) = match self {
            Self::Sha256 => (SHA_256, Sha256::digest(message).to_vec()),
            Self::Sha512 => (SHA_512, Sha512::digest(message).to_vec()),
        };
        let padding = Pkcs1v15Sign {
            hash_len: Some(hash.len()),
            prefix: prefix.into(),
        };
        (padding, hash)
    }
}

/// A key that verifies.
pub(in crate::provider) struct PublicKey(RsaPublicKey);

impl PublicKey {
    pub(in crate::provider) fn verify(
        &self,
        hash: RsaHash,
        message: &[u8],
        signature: &[u8],
    ) -> bool {
        let (padding, hash) = hash.of(message);
        self.0.verify(padding, &hash, signature).is_ok()
    }
}

/// The public key of a secret in PEM, be it a public or a private one.
pub(in crate::provider) fn public_key(secret: &[u8]) -> Option<PublicKey> {
    let text = std::str::from_utf8(secret).ok()?;
    let key = match private_key(text) {
        Some(private) => private.to_public_key(),
        None => RsaPublicKey::from_public_key_pem(text).ok()?,
    };
    Some(PublicKey(key))
}

/// Signs for tests: the time that it takes is not constant.
pub(in crate::provider) fn sign(hash: RsaHash, secret: &[u8], message: &[u8]) -> Option<Vec<u8>> {
    let (padding, hash) = hash.of(message);
    let key = private_key(std::str::from_utf8(secret).ok()?)?;
    key.sign(padding, &hash).ok()
}

fn private_key(text: &str) -> Option<RsaPrivateKey> {
    RsaPrivateKey::from_pkcs8_pem(text).ok()
}
