//! ECDSA with P-256 and SHA-256: the only user of `p256`.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD as BASE64, URL_SAFE_NO_PAD as BASE64URL};
use p256::ecdsa::signature::{Signer, Verifier};
use p256::ecdsa::{Signature, SigningKey, VerifyingKey};
use p256::pkcs8::{DecodePrivateKey, DecodePublicKey};
use serde_json::{Map, Value};

/// A key that verifies.
pub(in crate::provider) struct PublicKey(VerifyingKey);

impl PublicKey {
    /// A signature in DER.
    pub(super) fn verify_der(&self, message: &[u8], signature: &[u8]) -> bool {
        self.verify(message, Signature::from_der(signature).ok())
    }

    /// A signature of the numbers r and s, each of 32 bytes, as in JSON Web Signatures.
    pub(in crate::provider) fn verify_fixed(&self, message: &[u8], signature: &[u8]) -> bool {
        self.verify(message, Signature::from_slice(signature).ok())
    }

    fn verify(&self, message: &[u8], signature: Option<Signature>) -> bool {
        signature.is_some_and(|signature| self.0.verify(message, &signature).is_ok())
    }
}

/// The public key of a secret: in PEM, in base64 without the lines around it, or that of a private
/// key in PEM.
pub(super) fn public_key(secret: &[u8]) -> Option<PublicKey> {
    let text = std::str::from_utf8(secret).ok()?;
    if let Some(private) = private_key(text) {
        return Some(PublicKey(*private.verifying_key()));
    }
    let key = match text.starts_with("-----BEGIN ") {
        true => VerifyingKey::from_public_key_pem(text).ok()?,
        false => VerifyingKey::from_public_key_der(&BASE64.decode(text).ok()?).ok()?,
    };
    Some(PublicKey(key))
}

/// The public key in a JSON Web Key.
pub(in crate::provider) fn public_key_of_jwk(jwk: &Map<String, Value>) -> Option<PublicKey> {
    let text = |name| jwk.get(name).and_then(Value::as_str);
    if text("kty") != Some("EC") || text("crv") != Some("P-256") {
        return None;
    }
    let number = |name| BASE64URL.decode(text(name)?).ok().filter(|x| x.len() == 32);
    let point = [vec![4], number("x")?, number("y")?].concat();
    VerifyingKey::from_sec1_bytes(&point).ok().map(PublicKey)
}

/// The signature of a JSON Web Key that is private, as in JSON Web Signatures.
pub(in crate::provider) fn sign_with_jwk(
    jwk: &Map<String, Value>,
    message: &[u8],
) -> Option<Vec<u8>> {
    let private = BASE64URL.decode(jwk.get("d")?.as_str()?).ok()?;
    let signature: Signature = SigningKey::from_slice(&private).ok()?.sign(message);
    Some(signature.to_bytes().to_vec())
}

pub(super) fn sign_der(secret: &[u8], message: &[u8]) -> Option<Vec<u8>> {
    let key = private_key(std::str::from_utf8(secret).ok()?)?;
    let signature: Signature = key.sign(message);
    Some(signature.to_der().as_bytes().to_vec())
}

fn private_key(text: &str) -> Option<SigningKey> {
    SigningKey::from_pkcs8_pem(text).ok()
}
