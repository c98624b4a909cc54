//! A request that may be a handshake.

use std::borrow::Cow;

use http::request::Parts;
use http::{HeaderMap, Method};

use crate::provider::json_path::{JsonPath, Match, Reader};
use crate::provider::public_url::path_and_query;
use crate::provider::signature::form::query_values;
use crate::provider::signature::{SignatureScheme, SignedRequest};
use crate::provider::{Secret, Secrets};

/// A request that may be a handshake, for
/// [`Provider::unsigned_handshake`](crate::Provider::unsigned_handshake) and
/// [`Provider::signed_handshake`](crate::Provider::signed_handshake).
#[derive(Clone, Copy, Debug)]
pub struct HandshakeRequest<'a> {
    request: SignedRequest<'a>,
    head: &'a Parts,
    scheme: &'a dyn SignatureScheme,
    secrets: Option<&'a Secrets>,
}

impl<'a> HandshakeRequest<'a> {
    pub(crate) fn new(
        request: SignedRequest<'a>,
        head: &'a Parts,
        scheme: &'a dyn SignatureScheme,
        secrets: Option<&'a Secrets>,
    ) -> Self {
        Self {
            request,
            head,
            scheme,
            secrets,
        }
    }

    /// The method.
    pub fn method(&self) -> &'a Method {
        self.request.method()
    }

    /// The headers.
    pub fn headers(&self) -> &'a HeaderMap {
        self.request.headers()
    }

    /// The first value of a header, if it is visible ASCII.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        self.headers().get(name)?.to_str().ok()
    }

    /// The first value with this name in the query, decoded.
    pub fn query_value(&self, name: &str) -> Option<Cow<'a, str>> {
        query_values(path_and_query(self.head), name).next()
    }

    /// The URL that the provider called, if its base is known.
    #[cfg(all(feature = "p256", feature = "sha1"))]
    pub(crate) fn url(&self) -> Option<String> {
        self.request.url().ok()
    }

    /// The raw body.
    pub fn body(&self) -> &'a [u8] {
        self.request.body()
    }

    /// A string or an integer in the JSON body.
    pub fn json(&self, path: &JsonPath) -> Option<String> {
        match Reader::new([path]).read(self.body()).ok()?.pop()? {
            Match::Text(text) => Some(text),
            Match::Nothing | Match::Boolean(_) | Match::Null | Match::Other => None,
        }
    }

    /// The secrets of the provider, or of the tenant. `None` if the tenant is unknown.
    pub fn secrets(&self) -> Option<&'a Secrets> {
        self.secrets
    }

    /// The secret that signed the request, if it is one of the known secrets.
    pub fn signing_secret(&self) -> Option<&'a Secret> {
        self.secrets?
            .iter()
            .find(|secret| self.is_signed_with((*secret).clone()))
    }

    /// Whether the request is signed with this secret, which need not be one of the provider's.
    pub fn is_signed_with(&self, secret: Secret) -> bool {
        let secrets = Secrets::new(secret);
        self.scheme.verify(&self.request, &secrets).is_ok()
    }
}
