//! Ed25519 with keys in hex, in base64 or as JSON Web Keys: the only user of `ed25519-dalek`.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD as BASE64, URL_SAFE_NO_PAD as BASE64URL};
use serde_json::{Map, Value};

use super::key::SignatureAlgorithm;

/// A public key. In tests, it may include the private key.
#[derive(Clone)]
pub(super) struct Key {
    public: [u8; 32],
    private: Option<[u8; 32]>,
}

impl Key {
    /// Reads a key from the text of a secret: 32 bytes, or 64 bytes with the private key first, in hex or base64.
    pub(super) fn from_secret(secret: &[u8]) -> Option<Self> {
        // The lengths differ, so no text is valid as both hex and base64.
        let decoded = match secret.len() {
            64 | 128 => hex::decode(secret).ok()?,
            _ => BASE64.decode(secret).ok()?,
        };
        let (private, public) = match decoded.len() {
            32 => (None, decoded.as_slice()),
            64 => {
                let (private, public) = decoded.split_at(32);
                (Some(private.try_into().ok()?), public)
            }
            _ => return None,
        };
        Self::new(public, private)
    }

    /// A JSON Web Key (RFC 8037).
    pub(super) fn from_jwk(jwk: &Map<String, Value>) -> Option<Self> {
        let text = |name| jwk.get(name).and_then(Value::as_str);
        if text("kty") != Some("OKP") || text("crv") != Some("Ed25519") {
            return None;
        }
        let bytes = |name| BASE64URL.decode(text(name)?).ok();
        let private = bytes("d").and_then(|private| private.try_into().ok());
        Self::new(&bytes("x")?, private)
    }

    fn new(public: &[u8], private: Option<[u8; 32]>) -> Option<Self> {
        let public = public.try_into().ok()?;
        is_key(&public).then_some(Self { public, private })
    }
}

impl super::key::Key for Key {
    fn is_for(&self, algorithm: SignatureAlgorithm) -> bool {
        algorithm == SignatureAlgorithm::Ed25519
    }

    fn verify(&self, algorithm: SignatureAlgorithm, message: &[u8], signature: &[u8]) -> bool {
        let signature = signature.try_into().ok();
        self.is_for(algorithm)
            && signature.is_some_and(|signature| is_signature(&self.public, message, signature))
    }

    fn sign(&self, algorithm: SignatureAlgorithm, message: &[u8]) -> Option<Vec<u8>> {
        let private = self.private.filter(|_| self.is_for(algorithm))?;
        Some(sign(&private, message).to_vec())
    }
}

/// Whether `signature` is a valid ed25519 signature of `message`. Weak public keys are refused.
pub(in crate::provider::signature) fn is_signature(
    public: &[u8; 32],
    message: &[u8],
    signature: &[u8; 64],
) -> bool {
    ed25519_dalek::VerifyingKey::from_bytes(public)
        .is_ok_and(|key| key.verify_strict(message, &signature.into()).is_ok())
}

/// Whether this is a public key. Weak keys are refused.
fn is_key(public: &[u8; 32]) -> bool {
    ed25519_dalek::VerifyingKey::from_bytes(public).is_ok_and(|key| !key.is_weak())
}

/// The ed25519 signature of `message` with the private key of `seed`.
pub(in crate::provider::signature) fn sign(seed: &[u8; 32], message: &[u8]) -> [u8; 64] {
    use ed25519_dalek::Signer;
    ed25519_dalek::SigningKey::from_bytes(seed)
        .sign(message)
        .to_bytes()
}

#[cfg(test)]
mod tests {
    use super::super::key::Key as _;
    use super::*;

    /// RFC 8032, section 7.1, test 2.
    const PRIVATE: &str = "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb";
    const PUBLIC: &str = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
    const SIGNATURE: &str = "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
                             085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";

    #[test]
    fn it_agrees_with_rfc_8032() -> Result<(), hex::FromHexError> {
        let pair = format!("{PRIVATE}{PUBLIC}");
        let signature = hex::decode(SIGNATURE)?;
        let ed25519 = SignatureAlgorithm::Ed25519;
        let sign = |key: &str| Key::from_secret(key.as_bytes())?.sign(ed25519, &[0x72]);
        assert_eq!(sign(&pair), Some(signature.clone()));
        let base64 = BASE64.encode(hex::decode(PUBLIC)?);
        let short = signature.get(1..).unwrap_or(&[]);
        for key in [PUBLIC, &pair, &base64] {
            let key = Key::from_secret(key.as_bytes()).ok_or(hex::FromHexError::OddLength)?;
            assert!(key.verify(ed25519, &[0x72], &signature));
            assert!(!key.verify(ed25519, &[0x73], &signature));
            assert!(!key.verify(ed25519, &[0x72], short));
        }
        assert_eq!(sign(PUBLIC), None);
        Ok(())
    }

    #[test]
    fn other_secrets_are_not_keys() {
        for wrong in [
            "",
            "secret",
            "00",
            &"zz".repeat(32),
            &"02".repeat(32),
            &PUBLIC[2..],
        ] {
            assert!(Key::from_secret(wrong.as_bytes()).is_none(), "{wrong}");
        }
    }
}
