//! ECDSA with P-256 and SHA-256: the only user of `p256`.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD as BASE64, URL_SAFE_NO_PAD as BASE64URL};
use p256::ecdsa::signature::hazmat::{PrehashSigner, PrehashVerifier};
use p256::ecdsa::{Signature, SigningKey, VerifyingKey};
use p256::pkcs8::{DecodePrivateKey, DecodePublicKey};
use serde_json::{Map, Value};

use super::key::SignatureAlgorithm;
#[cfg(feature = "sha1")]
use crate::provider::signature::digests::sha1;
use crate::provider::signature::digests::sha256;

/// A public key. In tests, it may include the private key.
#[derive(Clone)]
pub(super) struct Key {
    public: VerifyingKey,
    private: Option<SigningKey>,
}

impl Key {
    /// Reads a key from the text of a secret: a public key in PEM, a public key in base64 without
    /// the lines around it, or a private key in PEM.
    pub(super) fn from_secret(secret: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(secret).ok()?;
        if let Ok(private) = SigningKey::from_pkcs8_pem(text) {
            return Some(private.into());
        }
        if !text.starts_with("-----BEGIN ") {
            return Self::from_der(&BASE64.decode(text).ok()?);
        }
        VerifyingKey::from_public_key_pem(text).ok().map(Self::from)
    }

    /// A public key together with its algorithm (`SubjectPublicKeyInfo`).
    pub(super) fn from_der(der: &[u8]) -> Option<Self> {
        VerifyingKey::from_public_key_der(der).ok().map(Self::from)
    }

    pub(super) fn from_jwk(jwk: &Map<String, Value>) -> Option<Self> {
        let text = |name| jwk.get(name).and_then(Value::as_str);
        if text("kty") != Some("EC") || text("crv") != Some("P-256") {
            return None;
        }
        let number = |name| BASE64URL.decode(text(name)?).ok().filter(|x| x.len() == 32);
        let point = [vec![4], number("x")?, number("y")?].concat();
        let private = number("d").and_then(|private| SigningKey::from_slice(&private).ok());
        let public = VerifyingKey::from_sec1_bytes(&point).ok()?;
        Some(Self { public, private })
    }
}

impl super::key::Key for Key {
    fn is_for(&self, algorithm: SignatureAlgorithm) -> bool {
        matches!(
            algorithm,
            SignatureAlgorithm::EcdsaP256
                | SignatureAlgorithm::Es256
                | SignatureAlgorithm::EcdsaP256Sha1
        )
    }

    fn verify(&self, algorithm: SignatureAlgorithm, message: &[u8], signature: &[u8]) -> bool {
        let signature = match algorithm {
            SignatureAlgorithm::Es256 => Signature::from_slice(signature),
            _ => Signature::from_der(signature),
        };
        let hash = hash(algorithm, message);
        signature
            .ok()
            .zip(hash)
            .is_some_and(|(signature, hash)| self.public.verify_prehash(&hash, &signature).is_ok())
    }

    fn sign(&self, algorithm: SignatureAlgorithm, message: &[u8]) -> Option<Vec<u8>> {
        let hash = hash(algorithm, message)?;
        let signature: Signature = self.private.as_ref()?.sign_prehash(&hash).ok()?;
        Some(match algorithm {
            SignatureAlgorithm::Es256 => signature.to_bytes().to_vec(),
            _ => signature.to_der().as_bytes().to_vec(),
        })
    }
}

/// The digest of a message to sign. `None` if keys of this kind do not sign by the algorithm.
fn hash(algorithm: SignatureAlgorithm, message: &[u8]) -> Option<Vec<u8>> {
    match algorithm {
        SignatureAlgorithm::EcdsaP256 | SignatureAlgorithm::Es256 => Some(sha256([message])),
        #[cfg(feature = "sha1")]
        SignatureAlgorithm::EcdsaP256Sha1 => Some(sha1(message)),
        _ => None,
    }
}

impl From<VerifyingKey> for Key {
    fn from(public: VerifyingKey) -> Self {
        Self {
            public,
            private: None,
        }
    }
}

impl From<SigningKey> for Key {
    fn from(private: SigningKey) -> Self {
        Self {
            public: *private.verifying_key(),
            private: Some(private),
        }
    }
}
