//! A signature with a private key, described by data. The secret is the public key.

#[cfg(feature = "p256")]
pub(in crate::provider) mod ecdsa;
#[cfg(feature = "ed25519")]
mod ed25519;
#[cfg(feature = "rsa")]
pub(in crate::provider) mod rsa;

use std::borrow::Cow;
use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::HeaderMap;
use http::header::HeaderName;
use http::request::Parts;

use super::only_value;
use super::scheme::{SignatureError, SignatureScheme, Signed, SignedRequest};
use super::sign::{SignError, UnsignedRequest};
use super::signed_content::{Part, SignedContent, Values};
use super::timestamp::{TimeUnit, to_unix_time, unix_time};
use crate::provider::{Secret, SecretError, Secrets};

/// A signature with a private key, in a header, described by data. The secret is the public key as
/// the provider shows it, or, for tests, the private key.
///
/// | algorithm | the secret |
/// |---|---|
/// | [`ed25519`](Self::ed25519) | 32 bytes, or 64 with the private key first, in hex or base64 |
/// | [`ecdsa_p256`](Self::ecdsa_p256) | a public key in PEM, or without its first and last line; a private key in PEM (PKCS #8) |
/// | [`rsa_sha256`](Self::rsa_sha256), [`rsa_sha512`](Self::rsa_sha512) | a public key in PEM; a private key in PEM (PKCS #8) |
///
/// By default the signature is in base64, and the raw body is signed. With a timestamp,
/// `{timestamp}{body}` is signed. [`signed`](Self::signed) sets any other content.
///
/// ```
/// use http::HeaderName;
/// use idempotent_webhook::signature::{PublicKeySignature, SignedContent};
///
/// # #[cfg(feature = "ed25519")]
/// let scheme = PublicKeySignature::ed25519(HeaderName::from_static("x-acme-signature"))
///     .hex()
///     .timestamp_header(HeaderName::from_static("x-acme-time"))
///     .signed(SignedContent::new().timestamp().text("|").body());
/// ```
#[derive(Clone, Debug)]
pub struct PublicKeySignature {
    algorithm: Algorithm,
    header: HeaderName,
    encoding: Encoding,
    timestamp: Option<HeaderName>,
    content: SignedContent,
}

#[derive(Clone, Copy, Debug)]
enum Algorithm {
    #[cfg(feature = "ed25519")]
    Ed25519,
    #[cfg(feature = "p256")]
    EcdsaP256,
    #[cfg(feature = "rsa")]
    Rsa(rsa::RsaHash),
}

#[derive(Clone, Copy, Debug)]
enum Encoding {
    Hex,
    Base64,
}

impl PublicKeySignature {
    /// Ed25519 (RFC 8032). Feature `ed25519`.
    #[cfg(feature = "ed25519")]
    pub fn ed25519(header: HeaderName) -> Self {
        Self::new(Algorithm::Ed25519, header)
    }

    /// ECDSA with P-256 and SHA-256, in DER. Feature `p256`.
    #[cfg(feature = "p256")]
    pub fn ecdsa_p256(header: HeaderName) -> Self {
        Self::new(Algorithm::EcdsaP256, header)
    }

    /// RSA PKCS #1 v1.5 with SHA-256. Feature `rsa`.
    #[cfg(feature = "rsa")]
    pub fn rsa_sha256(header: HeaderName) -> Self {
        Self::new(Algorithm::Rsa(rsa::RsaHash::Sha256), header)
    }

    /// RSA PKCS #1 v1.5 with SHA-512. Feature `rsa`.
    #[cfg(feature = "rsa")]
    pub fn rsa_sha512(header: HeaderName) -> Self {
        Self::new(Algorithm::Rsa(rsa::RsaHash::Sha512), header)
    }

    fn new(algorithm: Algorithm, header: HeaderName) -> Self {
        Self {
            algorithm,
            header,
            encoding: Encoding::Base64,
            timestamp: None,
            content: SignedContent::new().body(),
        }
    }

    /// The signature is in hexadecimal digits. Default: base64.
    #[must_use]
    pub fn hex(mut self) -> Self {
        self.encoding = Encoding::Hex;
        self
    }

    /// The time of signing is in a header, as a Unix time in seconds. The signed content becomes
    /// `{timestamp}{body}`.
    #[must_use]
    pub fn timestamp_header(mut self, header: HeaderName) -> Self {
        self.timestamp = Some(header);
        self.content = SignedContent::new().timestamp().body();
        self
    }

    /// What the signature covers. Call it after [`timestamp_header`](Self::timestamp_header).
    ///
    /// # Panics
    ///
    /// If the content leaves out the body or the timestamp that was named; or if it has a timestamp
    /// whose header was not named, or an id, which has no place here.
    #[must_use]
    pub fn signed(mut self, content: SignedContent) -> Self {
        assert!(
            content.has(&Part::Body),
            "the signed content leaves out the body"
        );
        assert!(
            self.timestamp.is_some() == content.has(&Part::Timestamp),
            "the signed content and the headers must both have a timestamp, or neither"
        );
        assert!(
            !content.has(&Part::Id),
            "the signed content has an id: name its header instead"
        );
        self.content = content;
        self
    }

    fn signature(&self, headers: &HeaderMap) -> Result<Vec<u8>, SignatureError> {
        let text = only_value(headers, &self.header)?;
        let decoded = match self.encoding {
            Encoding::Hex => hex::decode(text).ok(),
            Encoding::Base64 => BASE64.decode(text).ok(),
        };
        decoded.ok_or_else(|| SignatureError::MalformedHeader(self.header.clone()))
    }

    /// The time of signing, and its text, which is signed.
    fn time<'a>(
        &self,
        headers: &'a HeaderMap,
    ) -> Result<Option<(&'a str, SystemTime)>, SignatureError> {
        let Some(name) = &self.timestamp else {
            return Ok(None);
        };
        let text = only_value(headers, name)?;
        let time = unix_time(text, TimeUnit::Seconds)
            .ok_or_else(|| SignatureError::MalformedHeader(name.clone()))?;
        Ok(Some((text, time)))
    }

    fn message(&self, values: &Values<'_>) -> Result<Vec<u8>, SignatureError> {
        let mut message = Vec::with_capacity(values.body.len() + 32);
        self.content
            .feed(values, &mut |part| message.extend_from_slice(part))?;
        Ok(message)
    }
}

impl SignatureScheme for PublicKeySignature {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        self.signature(&head.headers)?;
        self.time(&head.headers).map(drop)
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let headers = request.headers();
        let signature = self.signature(headers)?;
        let time = self.time(headers)?;
        let url = match self.content.has(&Part::Url) {
            true => request.url()?,
            false => String::new(),
        };
        let message = self.message(&Values {
            timestamp: time.map_or("", |(text, _)| text),
            id: "",
            body: request.body(),
            method: request.method(),
            headers,
            path_and_query: request.path_and_query(),
            url: &url,
        })?;
        let mut error = SignatureError::NoMatch;
        for secret in secrets.iter() {
            match self.algorithm.verify(secret.expose(), &message, &signature) {
                Some(true) => {
                    return Ok(time.map_or_else(Signed::new, |(_, time)| Signed::new().at(time)));
                }
                Some(false) => {}
                None => error = SignatureError::UnusableSecret,
            }
        }
        Err(error)
    }

    fn signs_time(&self) -> bool {
        self.timestamp.is_some()
    }

    fn signs_url(&self) -> bool {
        self.content.has(&Part::Url)
    }

    fn description(&self) -> Cow<'static, str> {
        self.algorithm.name().into()
    }

    fn check_secret(&self, secret: &Secret) -> Result<(), SecretError> {
        // The signature is wrong, which only a usable key can tell.
        match self.algorithm.verify(secret.expose(), b"", b"") {
            Some(_) => Ok(()),
            None => Err(SecretError::new(self.algorithm.key())),
        }
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        let time = to_unix_time(request.time(), TimeUnit::Seconds).to_string();
        if let Some(name) = &self.timestamp {
            request.insert_header(name.clone(), &time)?;
        }
        let url = match self.content.has(&Part::Url) {
            true => request.url()?,
            false => String::new(),
        };
        let message = self
            .message(&Values {
                timestamp: &time,
                id: "",
                body: request.body(),
                method: request.method(),
                headers: request.headers(),
                path_and_query: request.path_and_query(),
                url: &url,
            })
            .map_err(|_| SignError::new("the request lacks a part that is signed"))?;
        let signature = self
            .algorithm
            .sign(secret.expose(), &message)
            .ok_or(SignError::new("the secret is not a private key"))?;
        let signature = match self.encoding {
            Encoding::Hex => hex::encode(signature),
            Encoding::Base64 => BASE64.encode(signature),
        };
        request.insert_header(self.header.clone(), signature)
    }
}

impl Algorithm {
    /// Whether the signature is valid. `None` if the secret is not a key of this kind.
    fn verify(self, secret: &[u8], message: &[u8], signature: &[u8]) -> Option<bool> {
        match self {
            #[cfg(feature = "ed25519")]
            Self::Ed25519 => ed25519::verify(secret, message, signature),
            #[cfg(feature = "p256")]
            Self::EcdsaP256 => Some(ecdsa::public_key(secret)?.verify_der(message, signature)),
            #[cfg(feature = "rsa")]
            Self::Rsa(hash) => Some(rsa::public_key(secret)?.verify(hash, message, signature)),
        }
    }

    /// The signature. `None` if the secret is not a private key of this kind.
    fn sign(self, secret: &[u8], message: &[u8]) -> Option<Vec<u8>> {
        match self {
            #[cfg(feature = "ed25519")]
            Self::Ed25519 => ed25519::sign(secret, message),
            #[cfg(feature = "p256")]
            Self::EcdsaP256 => ecdsa::sign_der(secret, message),
            #[cfg(feature = "rsa")]
            Self::Rsa(hash) => rsa::sign(hash, secret, message),
        }
    }

    fn name(self) -> &'static str {
        match self {
            #[cfg(feature = "ed25519")]
            Self::Ed25519 => "Ed25519",
            #[cfg(feature = "p256")]
            Self::EcdsaP256 => "ECDSA P-256",
            #[cfg(feature = "rsa")]
            Self::Rsa(rsa::RsaHash::Sha256) => "RSA PKCS #1, SHA-256",
            #[cfg(feature = "rsa")]
            Self::Rsa(rsa::RsaHash::Sha512) => "RSA PKCS #1, SHA-512",
        }
    }

    /// What a secret has to be.
    fn key(self) -> &'static str {
        match self {
            #[cfg(feature = "ed25519")]
            Self::Ed25519 => "it is not an ed25519 key of 32 or 64 bytes in hex or base64",
            #[cfg(feature = "p256")]
            Self::EcdsaP256 => "it is not a P-256 key in PEM or base64",
            #[cfg(feature = "rsa")]
            Self::Rsa(_) => "it is not an RSA key in PEM",
        }
    }
}
