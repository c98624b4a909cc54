//! A public key of any kind, and signing with its private key.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

#[cfg(feature = "p256")]
use super::ecdsa;
#[cfg(feature = "ed25519")]
use super::ed25519;
#[cfg(feature = "rsa")]
use super::rsa;

/// How a message is signed with a private key. If the feature of an algorithm is off, no key for it can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SignatureAlgorithm {
    /// Ed25519 (RFC 8032). Feature `ed25519`.
    Ed25519,
    /// ECDSA with P-256 and SHA-256, in DER. Feature `p256`.
    EcdsaP256,
    /// Like [`EcdsaP256`](Self::EcdsaP256), but as two numbers of 32 bytes each: `ES256` of JSON Web Signatures.
    /// Feature `p256`.
    Es256,
    /// ECDSA with P-256 and SHA-1, in DER. Features `p256` and `sha1`.
    EcdsaP256Sha1,
    /// RSA PKCS #1 v1.5 with SHA-1. Features `rsa` and `sha1`.
    RsaSha1,
    /// RSA PKCS #1 v1.5 with SHA-256: `RS256` of JSON Web Signatures. Feature `rsa`.
    RsaSha256,
    /// RSA PKCS #1 v1.5 with SHA-512: `RS512` of JSON Web Signatures. Feature `rsa`.
    RsaSha512,
}

/// A public key of Ed25519, P-256 or RSA. Each needs the feature of its algorithm.
#[derive(Clone)]
pub struct PublicKey {
    key: Arc<dyn Key>,
    /// The name of the only JSON Web Token algorithm that the key may be used with, if the key names one.
    jws_name: Option<Arc<str>>,
}

/// A public key of one kind. In tests, it includes the private key, which signs.
pub(super) trait Key: Send + Sync {
    /// Whether keys of this kind sign by an algorithm.
    #[cfg(any(feature = "ed25519", feature = "p256", feature = "rsa"))]
    fn is_for(&self, algorithm: SignatureAlgorithm) -> bool;

    fn verify(&self, algorithm: SignatureAlgorithm, message: &[u8], signature: &[u8]) -> bool;

    /// `None` if there is no private key.
    fn sign(&self, algorithm: SignatureAlgorithm, message: &[u8]) -> Option<Vec<u8>>;
}

impl PublicKey {
    #[cfg(any(feature = "ed25519", feature = "p256", feature = "rsa"))]
    fn new(key: impl Key + 'static) -> Self {
        Self {
            key: Arc::new(key),
            jws_name: None,
        }
    }

    /// The keys that a secret can be read as, at most one of each kind.
    fn of_secret(secret: &[u8]) -> impl Iterator<Item = Self> {
        let kinds: [Option<Self>; _] = [
            None,
            #[cfg(feature = "ed25519")]
            ed25519::Key::from_secret(secret).map(Self::new),
            #[cfg(feature = "p256")]
            ecdsa::Key::from_secret(secret).map(Self::new),
            #[cfg(feature = "rsa")]
            rsa::Key::from_secret(secret).map(Self::new),
        ];
        let _ = secret;
        kinds.into_iter().flatten()
    }

    /// A key in PEM, whose line breaks may be missing, or only the base64 of the PEM. In tests, a private key
    /// (PKCS #8) also signs.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        const BEGIN: &str = "-----BEGIN PUBLIC KEY-----";
        const END: &str = "-----END PUBLIC KEY-----";
        let is_one_line = !text.trim().contains('\n');
        let inner = text
            .strip_prefix(BEGIN)
            .and_then(|rest| rest.strip_suffix(END));
        let text = inner.filter(|_| is_one_line).unwrap_or(text);
        Self::of_secret(text.as_bytes()).next()
    }

    /// A JSON Web Key (RFC 7517).
    pub(crate) fn from_jwk(jwk: &Map<String, Value>) -> Option<Self> {
        let kinds: [Option<Self>; _] = [
            None,
            #[cfg(feature = "ed25519")]
            ed25519::Key::from_jwk(jwk).map(Self::new),
            #[cfg(feature = "p256")]
            ecdsa::Key::from_jwk(jwk).map(Self::new),
            #[cfg(feature = "rsa")]
            rsa::Key::from_jwk(jwk).map(Self::new),
        ];
        let key = kinds.into_iter().flatten().next()?;
        let jws_name = jwk.get("alg").and_then(Value::as_str).map(Into::into);
        Some(Self { jws_name, ..key })
    }

    /// The key of a certificate, together with its algorithm (`SubjectPublicKeyInfo`).
    #[cfg(feature = "x509")]
    pub(crate) fn from_der(der: &[u8]) -> Option<Self> {
        let p256 = ecdsa::Key::from_der(der).map(Self::new);
        p256.or_else(|| rsa::Key::from_der(der).map(Self::new))
    }

    /// Whether a signature is valid. It is never valid if the key is not of the algorithm's kind, or if the key's `alg`
    /// names another algorithm.
    pub fn verify(&self, algorithm: SignatureAlgorithm, message: &[u8], signature: &[u8]) -> bool {
        let named = self.jws_name.as_deref().zip(algorithm.jws_name());
        named.is_none_or(|(ours, name)| ours == name)
            && self.key.verify(algorithm, message, signature)
    }

    /// Signs for tests. `None` if there is no private key, or if it is of another kind.
    pub(crate) fn sign(&self, algorithm: SignatureAlgorithm, message: &[u8]) -> Option<Vec<u8>> {
        self.key.sign(algorithm, message)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The key may be a private one.
        f.write_str("PublicKey(redacted)")
    }
}

impl SignatureAlgorithm {
    /// The name of the algorithm in the header of a JSON Web Token. `None` if tokens are not signed by it.
    pub(crate) fn jws_name(self) -> Option<&'static str> {
        match self {
            Self::Ed25519 => Some("EdDSA"),
            Self::Es256 => Some("ES256"),
            Self::RsaSha256 => Some("RS256"),
            Self::RsaSha512 => Some("RS512"),
            Self::EcdsaP256 | Self::EcdsaP256Sha1 | Self::RsaSha1 => None,
        }
    }
}

#[cfg(any(feature = "ed25519", feature = "p256", feature = "rsa"))]
impl SignatureAlgorithm {
    /// Reads a key from the text of a secret. `None` if the text is not a key for this algorithm.
    pub(crate) fn key_of(self, secret: &[u8]) -> Option<PublicKey> {
        PublicKey::of_secret(secret).find(|key| key.key.is_for(self))
    }

    pub(super) fn description(self) -> &'static str {
        match self {
            Self::Ed25519 => "Ed25519",
            Self::EcdsaP256 | Self::Es256 => "ECDSA P-256",
            Self::EcdsaP256Sha1 => "ECDSA P-256, SHA-1",
            Self::RsaSha1 => "RSA PKCS #1, SHA-1",
            Self::RsaSha256 => "RSA PKCS #1, SHA-256",
            Self::RsaSha512 => "RSA PKCS #1, SHA-512",
        }
    }

    /// The error for a secret that is not a key for this algorithm.
    pub(super) fn key_form(self) -> &'static str {
        match self {
            Self::Ed25519 => "it is not an ed25519 key of 32 or 64 bytes in hex or base64",
            Self::EcdsaP256 | Self::Es256 | Self::EcdsaP256Sha1 => {
                "it is not a P-256 key in PEM or base64"
            }
            Self::RsaSha1 | Self::RsaSha256 | Self::RsaSha512 => "it is not an RSA key in PEM",
        }
    }
}
