//! RSA PKCS #1 v1.5: the only user of `rsa`.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use rsa::pkcs8::{DecodePrivateKey, DecodePublicKey};
use rsa::traits::PublicKeyParts;
use rsa::{BigUint, Pkcs1v15Sign, RsaPrivateKey, RsaPublicKey};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256, Sha512};

use super::key::SignatureAlgorithm;
#[cfg(feature = "sha1")]
use crate::provider::signature::digests::sha1;

/// The smallest accepted size of a fetched key, in bytes: 2048 bits (NIST SP 800-131A).
const MIN_FETCHED: usize = 256;

/// The prefix of the hash in a signature. It names the algorithm of the hash, in DER (RFC 8017, section 9.2).
#[cfg(feature = "sha1")]
const SHA_1: [u8; 15] = *b"\x30\x21\x30\x09\x06\x05\x2b\x0e\x03\x02\x1a\x05\x00\x04\x14";
const SHA_256: [u8; 19] =
    *b"\x30\x31\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x05\x00\x04\x20";
const SHA_512: [u8; 19] =
    *b"\x30\x51\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x03\x05\x00\x04\x40";

/// The padding and the hash of a message. The crate `rsa` depends on older versions of the hash crates, so it gets
/// finished hashes. `None` if keys of this kind do not sign by the algorithm.
fn hash(algorithm: SignatureAlgorithm, message: &[u8]) -> Option<(Pkcs1v15Sign, Vec<u8>)> {
    let (prefix, hash): (Box<[u8]>, _) = match algorithm {
        #[cfg(feature = "sha1")]
        SignatureAlgorithm::RsaSha1 => (SHA_1.into(), sha1(message)),
        SignatureAlgorithm::RsaSha256 => (SHA_256.into(), Sha256::digest(message).to_vec()),
        SignatureAlgorithm::RsaSha512 => (SHA_512.into(), Sha512::digest(message).to_vec()),
        _ => return None,
    };
    let padding = Pkcs1v15Sign {
        hash_len: Some(hash.len()),
        prefix,
    };
    Some((padding, hash))
}

/// A public key. In tests, it may include the private key.
#[derive(Clone)]
pub(super) struct Key {
    public: RsaPublicKey,
    private: Option<RsaPrivateKey>,
}

impl Key {
    /// Reads a key from the text of a secret: a public or a private key in PEM.
    pub(super) fn from_secret(secret: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(secret).ok()?;
        match RsaPrivateKey::from_pkcs8_pem(text) {
            Ok(private) => Some(Self {
                public: private.to_public_key(),
                private: Some(private),
            }),
            Err(_) => Some(Self::public(RsaPublicKey::from_public_key_pem(text).ok()?)),
        }
    }

    /// A public key together with its algorithm (`SubjectPublicKeyInfo`).
    #[cfg(feature = "x509")]
    pub(super) fn from_der(der: &[u8]) -> Option<Self> {
        let public = RsaPublicKey::from_public_key_der(der).ok()?;
        (public.size() >= MIN_FETCHED).then(|| Self::public(public))
    }

    pub(super) fn from_jwk(jwk: &Map<String, Value>) -> Option<Self> {
        let text = |name| jwk.get(name).and_then(Value::as_str);
        if text("kty") != Some("RSA") {
            return None;
        }
        let number = |name| {
            let bytes = BASE64URL.decode(text(name)?).ok()?;
            Some(BigUint::from_bytes_be(&bytes))
        };
        let public = RsaPublicKey::new(number("n")?, number("e")?).ok()?;
        (public.size() >= MIN_FETCHED).then(|| Self::public(public))
    }

    fn public(public: RsaPublicKey) -> Self {
        Self {
            public,
            private: None,
        }
    }
}

impl super::key::Key for Key {
    fn is_for(&self, algorithm: SignatureAlgorithm) -> bool {
        matches!(
            algorithm,
            SignatureAlgorithm::RsaSha1
                | SignatureAlgorithm::RsaSha256
                | SignatureAlgorithm::RsaSha512
        )
    }

    fn verify(&self, algorithm: SignatureAlgorithm, message: &[u8], signature: &[u8]) -> bool {
        hash(algorithm, message)
            .is_some_and(|(padding, hash)| self.public.verify(padding, &hash, signature).is_ok())
    }

    /// Signing does not take constant time.
    fn sign(&self, algorithm: SignatureAlgorithm, message: &[u8]) -> Option<Vec<u8>> {
        let (padding, hash) = hash(algorithm, message)?;
        self.private.as_ref()?.sign(padding, &hash).ok()
    }
}
