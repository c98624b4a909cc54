//! A configurable scheme for signatures that are made with a private key. The secret is the public key.

use std::borrow::Cow;
use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::HeaderMap;
use http::header::HeaderName;
use http::request::Parts;

use super::key::SignatureAlgorithm;
use crate::provider::keys::KeyRequest;
use crate::provider::signature::only_value;
use crate::provider::signature::scheme::{SignatureError, SignatureScheme, Signed, SignedRequest};
use crate::provider::signature::sign::{SignError, UnsignedRequest};
use crate::provider::signature::signed_content::{Part, SignedContent, Values};
use crate::provider::signature::timestamp::{TimeUnit, to_unix_time, unix_time};
use crate::provider::{Secret, SecretError, Secrets};

/// A configurable scheme for a signature in a header that is made with a private key.
///
/// The secret is the public key as the provider shows it or, in tests, the private key. With
/// [`keys_at`](Self::keys_at), the public keys are fetched, and there is no secret.
///
/// | algorithm | the secret |
/// |---|---|
/// | [`ed25519`](Self::ed25519) | 32 bytes, or 64 with the private key first, in hex or base64 |
/// | [`ecdsa_p256`](Self::ecdsa_p256) | a public key in PEM, or without its first and last line; a private key in PEM (PKCS #8) |
/// | [`rsa_sha256`](Self::rsa_sha256), [`rsa_sha512`](Self::rsa_sha512) | a public key in PEM; a private key in PEM (PKCS #8) |
///
/// By default, the signature is in base64, and the raw body is signed. With a timestamp, `{timestamp}{body}` is
/// signed. [`signed`](Self::signed) sets any other content.
///
/// ```
/// use http::HeaderName;
/// use idempotent_webhook::provider::signature::{PublicKeySignature, SignedContent};
///
/// # #[cfg(feature = "ed25519")]
/// let scheme = PublicKeySignature::ed25519(HeaderName::from_static("x-acme-signature"))
///     .hex()
///     .timestamp_header(HeaderName::from_static("x-acme-time"))
///     .signed(SignedContent::new().timestamp().text("|").body());
/// ```
#[derive(Clone, Debug)]
pub struct PublicKeySignature {
    algorithm: SignatureAlgorithm,
    header: HeaderName,
    encoding: Encoding,
    timestamp: Option<HeaderName>,
    content: SignedContent,
    keys: Option<KeyRequest>,
    key_id: Option<HeaderName>,
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
        Self::new(SignatureAlgorithm::Ed25519, header)
    }

    /// ECDSA with P-256 and SHA-256, in DER. Feature `p256`.
    #[cfg(feature = "p256")]
    pub fn ecdsa_p256(header: HeaderName) -> Self {
        Self::new(SignatureAlgorithm::EcdsaP256, header)
    }

    /// RSA PKCS #1 v1.5 with SHA-256. Feature `rsa`.
    #[cfg(feature = "rsa")]
    pub fn rsa_sha256(header: HeaderName) -> Self {
        Self::new(SignatureAlgorithm::RsaSha256, header)
    }

    /// RSA PKCS #1 v1.5 with SHA-512. Feature `rsa`.
    #[cfg(feature = "rsa")]
    pub fn rsa_sha512(header: HeaderName) -> Self {
        Self::new(SignatureAlgorithm::RsaSha512, header)
    }

    fn new(algorithm: SignatureAlgorithm, header: HeaderName) -> Self {
        Self {
            algorithm,
            header,
            encoding: Encoding::Base64,
            timestamp: None,
            content: SignedContent::new().body(),
            keys: None,
            key_id: None,
        }
    }

    /// The signature is in hexadecimal digits. Default: base64.
    #[must_use]
    pub fn hex(mut self) -> Self {
        self.encoding = Encoding::Hex;
        self
    }

    /// The time of signing is in this header, as a Unix time in seconds. The signed content becomes
    /// `{timestamp}{body}`.
    #[must_use]
    pub fn timestamp_header(mut self, header: HeaderName) -> Self {
        self.timestamp = Some(header);
        self.content = SignedContent::new().timestamp().body();
        self
    }

    /// Sets what the signature covers. Call it after [`timestamp_header`](Self::timestamp_header).
    ///
    /// # Panics
    ///
    /// If the content leaves out the body. If it leaves out the timestamp although the timestamp's header is set, or
    /// includes the timestamp although its header is not set. If it includes an id. In place of the id, include the
    /// header that carries it.
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

    /// The public keys are at this address, from which [`Provider::keys`](crate::Provider::keys) fetches them.
    ///
    /// ```
    /// use http::HeaderName;
    /// use idempotent_webhook::provider::keys::{KeyRequest, KeySource};
    /// use idempotent_webhook::provider::signature::PublicKeySignature;
    /// use idempotent_webhook::{Provider, Source};
    ///
    /// # #[cfg(all(feature = "p256", feature = "reqwest"))]
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let scheme = PublicKeySignature::ecdsa_p256(HeaderName::from_static("x-acme-signature"))
    ///     .keys_at(KeyRequest::get("https://acme.example/keys.json"))
    ///     .key_id(HeaderName::from_static("x-acme-key"));
    /// let acme = Provider::custom("acme")
    ///     .signature(scheme, KeySource::https()?)
    ///     .delivery_id(Source::json("$.id".parse()?));
    /// # Ok(())
    /// # }
    /// # #[cfg(not(all(feature = "p256", feature = "reqwest")))]
    /// # fn main() {}
    /// ```
    #[must_use]
    pub fn keys_at(mut self, request: KeyRequest) -> Self {
        self.keys = Some(request);
        self
    }

    /// The header that carries the id of the key, for [`keys_at`](Self::keys_at). Default: none. In this case, all keys
    /// are tried.
    #[must_use]
    pub fn key_id(mut self, header: HeaderName) -> Self {
        self.key_id = Some(header);
        self
    }

    /// Whether a message is signed with one of the keys at an address.
    fn verify_by_fetched(
        &self,
        at: &KeyRequest,
        request: &SignedRequest<'_>,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), SignatureError> {
        let id = match &self.key_id {
            Some(name) => Some(only_value(request.headers(), name)?),
            None => None,
        };
        request
            .check_signed_with_key_at(at, id, |key| key.verify(self.algorithm, message, signature))
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

    fn message_of(
        &self,
        request: &SignedRequest<'_>,
        timestamp: &str,
    ) -> Result<Vec<u8>, SignatureError> {
        let url = match self.content.has(&Part::Url) {
            true => request.url()?,
            false => String::new(),
        };
        self.message(&Values {
            timestamp,
            id: "",
            body: request.body(),
            method: request.method(),
            headers: request.headers(),
            path_and_query: request.path_and_query(),
            url: &url,
        })
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
        let message = self.message_of(request, time.map_or("", |(text, _)| text))?;
        let signed = time.map_or_else(Signed::new, |(_, time)| Signed::new().at(time));
        if let Some(at) = &self.keys {
            self.verify_by_fetched(at, request, &message, &signature)?;
            return Ok(signed);
        }
        let mut error = SignatureError::NoMatch;
        for secret in secrets.iter() {
            match self.algorithm.key_of(secret.expose()) {
                Some(key) if key.verify(self.algorithm, &message, &signature) => return Ok(signed),
                Some(_) => {}
                None => error = SignatureError::UnusableSecret,
            }
        }
        Err(error)
    }

    fn signed_content(
        &self,
        request: &SignedRequest<'_>,
    ) -> Result<Option<Vec<u8>>, SignatureError> {
        let time = self.time(request.headers())?;
        let message = self.message_of(request, time.map_or("", |(text, _)| text))?;
        Ok(Some(message))
    }

    fn signs_time(&self) -> bool {
        self.timestamp.is_some()
    }

    fn signs_url(&self) -> bool {
        self.content.has(&Part::Url)
    }

    fn description(&self) -> Cow<'static, str> {
        self.algorithm.description().into()
    }

    fn needs_keys(&self, _: &Secrets) -> bool {
        self.keys.is_some()
    }

    fn takes_secrets(&self) -> bool {
        self.keys.is_none()
    }

    fn check_secret(&self, secret: &Secret) -> Result<(), SecretError> {
        match self.keys.is_some() || self.algorithm.key_of(secret.expose()).is_some() {
            true => Ok(()),
            false => Err(SecretError::new(self.algorithm.key_form())),
        }
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        let time = to_unix_time(request.time(), TimeUnit::Seconds).to_string();
        if let Some(name) = &self.timestamp {
            request.insert_header(name.clone(), &time)?;
        }
        if let Some(name) = &self.key_id {
            let id = request.signing_key().and_then(|(id, _)| id);
            let id = id.unwrap_or("test").to_owned();
            request.insert_header(name.clone(), id)?;
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
        let key = match &self.keys {
            Some(_) => request.signing_key().map(|(_, key)| key.clone()),
            None => self.algorithm.key_of(secret.expose()),
        };
        let signature = key
            .and_then(|key| key.sign(self.algorithm, &message))
            .ok_or(SignError::no_key())?;
        let signature = match self.encoding {
            Encoding::Hex => hex::encode(signature),
            Encoding::Base64 => BASE64.encode(signature),
        };
        request.insert_header(self.header.clone(), signature)
    }
}
