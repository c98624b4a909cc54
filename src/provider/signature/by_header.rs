//! A choice between two schemes.

use std::borrow::Cow;
use std::sync::Arc;

use http::header::HeaderName;
use http::request::Parts;

use super::scheme::{SignatureError, SignatureScheme, Signed, SignedRequest};
use super::sign::{SignError, UnsignedRequest};
use crate::provider::{Secret, SecretError, Secrets};

/// One scheme for requests with a certain header, and another scheme for requests without it.
///
/// This is for providers that let users choose. The combination is only as strong as the weaker scheme, and covers only
/// what both schemes cover, because the sender chooses whether a request has the header.
///
/// ```
/// use http::HeaderName;
/// use idempotent_webhook::provider::signature::{ByHeader, Hmac, Token};
///
/// let signature = HeaderName::from_static("x-acme-signature");
/// let token = HeaderName::from_static("x-acme-token");
/// let scheme = ByHeader::new(signature.clone(), Hmac::hex(signature), Token::header(token));
/// ```
#[derive(Clone, Debug)]
pub struct ByHeader {
    header: HeaderName,
    with: Arc<dyn SignatureScheme>,
    without: Arc<dyn SignatureScheme>,
    signed_headers: Vec<HeaderName>,
}

impl ByHeader {
    /// `with` for requests that have `header`, and `without` for requests that do not.
    pub fn new(
        header: HeaderName,
        with: impl SignatureScheme,
        without: impl SignatureScheme,
    ) -> Self {
        let mut signed_headers = with.signed_headers().to_vec();
        signed_headers.retain(|name| without.signed_headers().contains(name));
        Self {
            header,
            with: Arc::new(with),
            without: Arc::new(without),
            signed_headers,
        }
    }

    fn scheme(&self, headers: &http::HeaderMap) -> &dyn SignatureScheme {
        match headers.contains_key(&self.header) {
            true => &*self.with,
            false => &*self.without,
        }
    }
}

impl SignatureScheme for ByHeader {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        self.scheme(&head.headers).check_head(head)
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        self.scheme(request.headers()).verify(request, secrets)
    }

    fn signed_content(
        &self,
        request: &SignedRequest<'_>,
    ) -> Result<Option<Vec<u8>>, SignatureError> {
        self.scheme(request.headers()).signed_content(request)
    }

    fn signed_headers(&self) -> &[HeaderName] {
        &self.signed_headers
    }

    fn signs_body(&self) -> bool {
        self.with.signs_body() && self.without.signs_body()
    }

    fn signs_body_bytes(&self) -> bool {
        self.with.signs_body_bytes() && self.without.signs_body_bytes()
    }

    fn signs_url(&self) -> bool {
        self.with.signs_url() || self.without.signs_url()
    }

    fn needs_public_url(&self) -> bool {
        self.with.needs_public_url() && self.without.needs_public_url()
    }

    fn signs_value(&self, name: &str) -> bool {
        self.with.signs_value(name) && self.without.signs_value(name)
    }

    fn signs_time(&self) -> bool {
        self.with.signs_time() || self.without.signs_time()
    }

    fn description(&self) -> Cow<'static, str> {
        format!(
            "{}; or {}",
            self.with.description(),
            self.without.description()
        )
        .into()
    }

    /// Accepts a secret that one of the two schemes can use.
    fn check_secret(&self, secret: &Secret) -> Result<(), SecretError> {
        self.with
            .check_secret(secret)
            .or_else(|_| self.without.check_secret(secret))
    }

    /// Signs with the first scheme, or with the second if the first cannot sign.
    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        self.with
            .sign(request, secret)
            .or_else(|_| self.without.sign(request, secret))
    }
}
