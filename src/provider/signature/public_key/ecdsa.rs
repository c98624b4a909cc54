//! ECDSA with P-256 and SHA-256: the only user of `p256`.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD as BASE64, URL_SAFE_NO_PAD as BASE64URL};
use p256::ecdsa::signature::{Signer, Verifier};
use p256::ecdsa::{Signature, SigningKey, VerifyingKey};
use p256::pkcs8::{DecodePrivateKey, DecodePublicKey};
use serde_json::{Map, Value};

#[cfg(feature = "sha1")]
use crate::provider::signature::keyed::sha1;

/// A key that verifies, and in tests the private one.
#[derive(Clone)]
pub(super) struct Key {
    public: VerifyingKey,
    private: Option<SigningKey>,
}

/// How the numbers r and s of a signature are written.
#[derive(Clone, Copy)]
pub(super) enum Form {
    Der,
    /// 32 bytes each, as in JSON Web Signatures.
    Fixed,
}

impl Key {
    /// The key of a secret: public in PEM, public in base64 without the lines around it, or private
    /// in PEM.
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

    /// A public key with its algorithm (`SubjectPublicKeyInfo`).
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

    pub(super) fn verify(&self, form: Form, message: &[u8], signature: &[u8]) -> bool {
        let signature = match form {
            Form::Der => Signature::from_der(signature),
            Form::Fixed => Signature::from_slice(signature),
        };
        signature.is_ok_and(|signature| self.public.verify(message, &signature).is_ok())
    }

    /// A signature in DER of the SHA-1, which one provider still makes.
    #[cfg(feature = "sha1")]
    pub(super) fn verify_sha1(&self, message: &[u8], signature: &[u8]) -> bool {
        use p256::ecdsa::signature::hazmat::PrehashVerifier;
        let hash = sha1(message);
        Signature::from_der(signature)
            .is_ok_and(|signature| self.public.verify_prehash(&hash, &signature).is_ok())
    }

    #[cfg(feature = "sha1")]
    pub(super) fn sign_sha1(&self, message: &[u8]) -> Option<Vec<u8>> {
        use p256::ecdsa::signature::hazmat::PrehashSigner;
        let private = self.private.as_ref()?;
        let signature: Signature = private.sign_prehash(&sha1(message)).ok()?;
        Some(signature.to_der().as_bytes().to_vec())
    }

    pub(super) fn sign(&self, form: Form, message: &[u8]) -> Option<Vec<u8>> {
        let signature: Signature = self.private.as_ref()?.sign(message);
        Some(match form {
            Form::Der => signature.to_der().as_bytes().to_vec(),
            Form::Fixed => signature.to_bytes().to_vec(),
        })
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
