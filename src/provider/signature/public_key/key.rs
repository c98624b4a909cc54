//! A public key of any kind, and what is signed with its private one.

use std::fmt;

use serde_json::{Map, Value};

#[cfg(feature = "p256")]
use super::ecdsa::{self, Form};
#[cfg(feature = "ed25519")]
use super::ed25519;
#[cfg(feature = "rsa")]
use super::rsa::{self, RsaHash};

/// How a message is signed with a private key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SignatureAlgorithm {
    /// Ed25519 (RFC 8032).
    #[cfg(feature = "ed25519")]
    Ed25519,
    /// ECDSA with P-256 and SHA-256, in DER.
    #[cfg(feature = "p256")]
    EcdsaP256,
    /// The same, as 32 bytes for each of both numbers: `ES256` of JSON Web Signatures.
    #[cfg(feature = "p256")]
    Es256,
    /// ECDSA with P-256 and SHA-1, in DER.
    #[cfg(all(feature = "p256", feature = "sha1"))]
    EcdsaP256Sha1,
    /// RSA PKCS #1 v1.5 with SHA-1.
    #[cfg(all(feature = "rsa", feature = "sha1"))]
    RsaSha1,
    /// RSA PKCS #1 v1.5 with SHA-256: `RS256` of JSON Web Signatures.
    #[cfg(feature = "rsa")]
    RsaSha256,
    /// RSA PKCS #1 v1.5 with SHA-512: `RS512` of JSON Web Signatures.
    #[cfg(feature = "rsa")]
    RsaSha512,
}

/// A public key of Ed25519, P-256 or RSA. Each needs the feature of its algorithm.
#[derive(Clone)]
pub struct PublicKey(Kind);

#[derive(Clone)]
enum Kind {
    #[cfg(feature = "ed25519")]
    Ed25519(ed25519::Key),
    #[cfg(feature = "p256")]
    P256(ecdsa::Key),
    #[cfg(feature = "rsa")]
    Rsa(rsa::Key),
}

impl PublicKey {
    /// A key in PEM, the line breaks of which may be missing, or its base64 alone. A private one (PKCS #8)
    /// also signs, in tests.
    pub(in crate::provider) fn from_text(text: &str) -> Option<Self> {
        const BEGIN: &str = "-----BEGIN PUBLIC KEY-----";
        const END: &str = "-----END PUBLIC KEY-----";
        let is_one_line = !text.trim().contains('\n');
        let text = match text
            .strip_prefix(BEGIN)
            .and_then(|rest| rest.strip_suffix(END))
        {
            Some(base64) if is_one_line => base64,
            Some(_) | None => text,
        };
        #[cfg(feature = "p256")]
        if let Some(key) = ecdsa::Key::from_secret(text.as_bytes()) {
            return Some(Self(Kind::P256(key)));
        }
        #[cfg(feature = "rsa")]
        if let Some(key) = rsa::Key::from_secret(text.as_bytes()) {
            return Some(Self(Kind::Rsa(key)));
        }
        let _ = text;
        None
    }

    /// A JSON Web Key (RFC 7517).
    pub(in crate::provider) fn from_jwk(jwk: &Map<String, Value>) -> Option<Self> {
        #[cfg(feature = "ed25519")]
        if let Some(key) = ed25519::Key::from_jwk(jwk) {
            return Some(Self(Kind::Ed25519(key)));
        }
        #[cfg(feature = "p256")]
        if let Some(key) = ecdsa::Key::from_jwk(jwk) {
            return Some(Self(Kind::P256(key)));
        }
        #[cfg(feature = "rsa")]
        if let Some(key) = rsa::Key::from_jwk(jwk) {
            return Some(Self(Kind::Rsa(key)));
        }
        let _ = jwk;
        None
    }

    /// The key of a certificate, with its algorithm (`SubjectPublicKeyInfo`).
    #[cfg(feature = "x509")]
    pub(in crate::provider) fn from_der(der: &[u8]) -> Option<Self> {
        let p256 = ecdsa::Key::from_der(der).map(Kind::P256);
        p256.or_else(|| rsa::Key::from_der(der).map(Kind::Rsa))
            .map(Self)
    }

    /// Whether a signature is valid. A key of another kind than the algorithm's has signed nothing.
    pub fn verify(&self, algorithm: SignatureAlgorithm, message: &[u8], signature: &[u8]) -> bool {
        let _ = (message, signature);
        match (&self.0, algorithm) {
            #[cfg(feature = "ed25519")]
            (Kind::Ed25519(key), SignatureAlgorithm::Ed25519) => key.verify(message, signature),
            #[cfg(feature = "p256")]
            (Kind::P256(key), SignatureAlgorithm::EcdsaP256) => {
                key.verify(Form::Der, message, signature)
            }
            #[cfg(feature = "p256")]
            (Kind::P256(key), SignatureAlgorithm::Es256) => {
                key.verify(Form::Fixed, message, signature)
            }
            #[cfg(all(feature = "p256", feature = "sha1"))]
            (Kind::P256(key), SignatureAlgorithm::EcdsaP256Sha1) => {
                key.verify_sha1(message, signature)
            }
            #[cfg(all(feature = "rsa", feature = "sha1"))]
            (Kind::Rsa(key), SignatureAlgorithm::RsaSha1) => {
                key.verify(RsaHash::Sha1, message, signature)
            }
            #[cfg(feature = "rsa")]
            (Kind::Rsa(key), SignatureAlgorithm::RsaSha256) => {
                key.verify(RsaHash::Sha256, message, signature)
            }
            #[cfg(feature = "rsa")]
            (Kind::Rsa(key), SignatureAlgorithm::RsaSha512) => {
                key.verify(RsaHash::Sha512, message, signature)
            }
            #[allow(unreachable_patterns, reason = "with one algorithm, all are listed")]
            _ => false,
        }
    }

    /// Signs for tests. `None` if there is no private key, or one of another kind.
    pub(in crate::provider) fn sign(
        &self,
        algorithm: SignatureAlgorithm,
        message: &[u8],
    ) -> Option<Vec<u8>> {
        let _ = message;
        match (&self.0, algorithm) {
            #[cfg(feature = "ed25519")]
            (Kind::Ed25519(key), SignatureAlgorithm::Ed25519) => key.sign(message),
            #[cfg(feature = "p256")]
            (Kind::P256(key), SignatureAlgorithm::EcdsaP256) => key.sign(Form::Der, message),
            #[cfg(feature = "p256")]
            (Kind::P256(key), SignatureAlgorithm::Es256) => key.sign(Form::Fixed, message),
            #[cfg(all(feature = "p256", feature = "sha1"))]
            (Kind::P256(key), SignatureAlgorithm::EcdsaP256Sha1) => key.sign_sha1(message),
            #[cfg(all(feature = "rsa", feature = "sha1"))]
            (Kind::Rsa(key), SignatureAlgorithm::RsaSha1) => key.sign(RsaHash::Sha1, message),
            #[cfg(feature = "rsa")]
            (Kind::Rsa(key), SignatureAlgorithm::RsaSha256) => key.sign(RsaHash::Sha256, message),
            #[cfg(feature = "rsa")]
            (Kind::Rsa(key), SignatureAlgorithm::RsaSha512) => key.sign(RsaHash::Sha512, message),
            #[allow(unreachable_patterns, reason = "with one algorithm, all are listed")]
            _ => None,
        }
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // It may be a private one.
        f.write_str("PublicKey(redacted)")
    }
}

impl SignatureAlgorithm {
    /// The key of a secret. `None` if it is no key of this kind.
    pub(in crate::provider) fn key_of(self, secret: &[u8]) -> Option<PublicKey> {
        let _ = secret;
        let kind = match self {
            #[cfg(feature = "ed25519")]
            Self::Ed25519 => Kind::Ed25519(ed25519::Key::from_secret(secret)?),
            #[cfg(feature = "p256")]
            Self::EcdsaP256 | Self::Es256 => Kind::P256(ecdsa::Key::from_secret(secret)?),
            #[cfg(all(feature = "p256", feature = "sha1"))]
            Self::EcdsaP256Sha1 => Kind::P256(ecdsa::Key::from_secret(secret)?),
            #[cfg(all(feature = "rsa", feature = "sha1"))]
            Self::RsaSha1 => Kind::Rsa(rsa::Key::from_secret(secret)?),
            #[cfg(feature = "rsa")]
            Self::RsaSha256 | Self::RsaSha512 => Kind::Rsa(rsa::Key::from_secret(secret)?),
        };
        Some(PublicKey(kind))
    }

    /// In the header of a JSON Web Token. `None` if no token is signed so.
    pub(in crate::provider) fn jws_name(self) -> Option<&'static str> {
        match self {
            #[cfg(feature = "ed25519")]
            Self::Ed25519 => Some("EdDSA"),
            #[cfg(feature = "p256")]
            Self::EcdsaP256 => None,
            #[cfg(feature = "p256")]
            Self::Es256 => Some("ES256"),
            #[cfg(all(feature = "p256", feature = "sha1"))]
            Self::EcdsaP256Sha1 => None,
            #[cfg(all(feature = "rsa", feature = "sha1"))]
            Self::RsaSha1 => None,
            #[cfg(feature = "rsa")]
            Self::RsaSha256 => Some("RS256"),
            #[cfg(feature = "rsa")]
            Self::RsaSha512 => Some("RS512"),
        }
    }

    pub(super) fn description(self) -> &'static str {
        match self {
            #[cfg(feature = "ed25519")]
            Self::Ed25519 => "Ed25519",
            #[cfg(feature = "p256")]
            Self::EcdsaP256 | Self::Es256 => "ECDSA P-256",
            #[cfg(all(feature = "p256", feature = "sha1"))]
            Self::EcdsaP256Sha1 => "ECDSA P-256, SHA-1",
            #[cfg(all(feature = "rsa", feature = "sha1"))]
            Self::RsaSha1 => "RSA PKCS #1, SHA-1",
            #[cfg(feature = "rsa")]
            Self::RsaSha256 => "RSA PKCS #1, SHA-256",
            #[cfg(feature = "rsa")]
            Self::RsaSha512 => "RSA PKCS #1, SHA-512",
        }
    }

    /// What a secret has to be.
    pub(super) fn key_form(self) -> &'static str {
        match self {
            #[cfg(feature = "ed25519")]
            Self::Ed25519 => "it is not an ed25519 key of 32 or 64 bytes in hex or base64",
            #[cfg(feature = "p256")]
            Self::EcdsaP256 | Self::Es256 => "it is not a P-256 key in PEM or base64",
            #[cfg(all(feature = "p256", feature = "sha1"))]
            Self::EcdsaP256Sha1 => "it is not a P-256 key in PEM or base64",
            #[cfg(all(feature = "rsa", feature = "sha1"))]
            Self::RsaSha1 => "it is not an RSA key in PEM",
            #[cfg(feature = "rsa")]
            Self::RsaSha256 | Self::RsaSha512 => "it is not an RSA key in PEM",
        }
    }
}
