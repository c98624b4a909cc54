//! Signing of requests, the reverse of verification. For tests.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Method, Uri};

use super::PublicKey;
use crate::provider::SecretError;
use crate::provider::keys::KeySet;
use crate::provider::public_url::{PublicUrl, path_and_query, public_path_and_query};

/// A request that a [`SignatureScheme`](super::SignatureScheme) signs as the provider does.
///
/// The delivery id and the event type have already been written into it.
#[derive(Debug)]
pub struct UnsignedRequest {
    head: Parts,
    body: Bytes,
    time: SystemTime,
    public_url: Option<PublicUrl>,
    keys: Option<Arc<KeySet>>,
}

impl UnsignedRequest {
    #[cfg(feature = "testing")]
    pub(crate) fn new(
        head: Parts,
        body: Bytes,
        time: SystemTime,
        public_url: Option<PublicUrl>,
    ) -> Self {
        Self {
            head,
            body,
            time,
            public_url,
            keys: None,
        }
    }

    #[cfg(feature = "testing")]
    pub(crate) fn keys(mut self, keys: Option<Arc<KeySet>>) -> Self {
        self.keys = keys;
        self
    }

    #[cfg(feature = "testing")]
    pub(crate) fn into_parts(self) -> (Parts, Bytes) {
        (self.head, self.body)
    }

    /// The method.
    pub fn method(&self) -> &Method {
        &self.head.method
    }

    /// The URL that the provider calls.
    ///
    /// # Errors
    ///
    /// [`SignError`] if [`Provider::public_url`](crate::Provider::public_url) is not set.
    pub fn url(&self) -> Result<String, SignError> {
        let missing = SignError::new("its URL is signed: set `Provider::public_url`");
        let base = self.public_url.as_ref().ok_or(missing)?;
        Ok(base.url_of(&self.head))
    }

    /// The path and the query that the provider calls.
    pub fn public_path_and_query(&self) -> String {
        public_path_and_query(self.public_url.as_ref(), &self.head)
    }

    /// The path and the query.
    pub fn path_and_query(&self) -> &str {
        path_and_query(&self.head)
    }

    /// The URI.
    pub fn uri(&self) -> &Uri {
        &self.head.uri
    }

    /// The headers.
    pub fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// The body.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// The time of signing.
    pub fn time(&self) -> SystemTime {
        self.time
    }

    /// The first of the keys that were given to the provider, with its id. If it is a private key, it signs.
    pub(crate) fn signing_key(&self) -> Option<(Option<&str>, &PublicKey)> {
        self.keys.as_ref()?.first()
    }

    /// The keys that were given to the provider.
    #[cfg(feature = "x509")]
    pub(crate) fn given_keys(&self) -> Option<&KeySet> {
        self.keys.as_deref()
    }

    /// Sets a header.
    ///
    /// # Errors
    ///
    /// [`SignError`] if the value cannot be put into a header.
    pub fn insert_header(
        &mut self,
        name: HeaderName,
        value: impl AsRef<[u8]>,
    ) -> Result<(), SignError> {
        let value = HeaderValue::from_bytes(value.as_ref())
            .map_err(|_| SignError::new("the value cannot be in a header"))?;
        self.head.headers.insert(name, value);
        Ok(())
    }

    /// Replaces the body, for schemes that write into it.
    pub fn set_body(&mut self, body: impl Into<Bytes>) {
        self.body = body.into();
    }
}

/// Why a request cannot be signed.
#[derive(Clone, Debug)]
pub struct SignError(&'static str);

impl SignError {
    /// There is no private key, and the secret is not a private key either.
    pub(crate) fn no_key() -> Self {
        Self::new(
            "there is no private key to sign with: give one by `KeySource::given`, or as the secret",
        )
    }

    /// An error with the reason.
    pub fn new(reason: &'static str) -> Self {
        Self(reason)
    }
}

/// For a preset's value whose text form cannot be read.
impl From<SecretError> for SignError {
    fn from(error: SecretError) -> Self {
        Self(error.reason())
    }
}

impl fmt::Display for SignError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the request cannot be signed: {}", self.0)
    }
}

impl std::error::Error for SignError {}
