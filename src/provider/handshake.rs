//! Handshakes: requests by which a provider checks that the endpoint is there.

use std::borrow::Cow;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Method, Response, StatusCode};

use super::json_path::{JsonPath, Match, Reader};
use super::public_url::path_and_query;
use super::secret::{Secret, Secrets};
use super::signature::{SignatureScheme, SignedRequest};
use super::source::Source;
use crate::error::BoxError;

/// How a handshake that is signed like a delivery, but has no id, is recognized and answered.
#[derive(Clone, Debug)]
pub(super) struct HandshakeRule {
    /// The event type of an authentic request without a delivery id.
    pub(super) event_type: Cow<'static, str>,
    /// The text that the provider wants back.
    pub(super) challenge: Source,
}

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
    pub(super) fn new(
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
        let (_, query) = path_and_query(self.head).split_once('?')?;
        form_urlencoded::parse(query.as_bytes())
            .find(|(other, _)| other == name)
            .map(|(_, value)| value)
    }

    /// The raw body.
    pub fn body(&self) -> &'a [u8] {
        self.request.body()
    }

    /// A string or an integer in the JSON body.
    pub fn json(&self, path: &JsonPath) -> Option<String> {
        match Reader::new([path]).read(self.body()).ok()?.pop()? {
            Match::Text(text) => Some(text),
            Match::Nothing | Match::Other => None,
        }
    }

    /// The secrets of the provider, or of the tenant. `None` if the tenant is unknown.
    pub fn secrets(&self) -> Option<&'a Secrets> {
        self.secrets
    }

    /// The secret under which the request is signed, if it is.
    pub fn signing_secret(&self) -> Option<&'a Secret> {
        self.secrets?
            .iter()
            .find(|secret| self.is_signed_with((*secret).clone()))
    }

    /// Whether the request is signed with this secret, be it one of the provider's or not.
    pub fn is_signed_with(&self, secret: Secret) -> bool {
        let secrets = Secrets::new(secret);
        self.scheme.verify(&self.request, &secrets).is_ok()
    }
}

/// A request by which the provider checks that the endpoint is there, such as Slack's
/// `url_verification`.
///
/// The layer answers it. After [`Provider::verify`](crate::Provider::verify) the caller has to
/// answer with [`response`](Self::response).
#[derive(Clone, Debug)]
pub struct Handshake {
    event_type: Cow<'static, str>,
    status: StatusCode,
    text: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    secret: Option<Secret>,
}

impl Handshake {
    /// A handshake that is answered with 200 and no body. The event type is its name in logs.
    pub fn empty(event_type: impl Into<Cow<'static, str>>) -> Self {
        Self {
            event_type: event_type.into(),
            status: StatusCode::OK,
            text: String::new(),
            headers: Vec::new(),
            secret: None,
        }
    }

    /// A handshake that is answered with 200 and a plain text.
    pub fn text(event_type: impl Into<Cow<'static, str>>, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::empty(event_type)
        }
        .header(
            CONTENT_TYPE,
            HeaderValue::from_static("text/plain; charset=utf-8"),
        )
    }

    /// A handshake that is answered with 200 and JSON.
    pub fn json(event_type: impl Into<Cow<'static, str>>, json: &serde_json::Value) -> Self {
        Self {
            text: json.to_string(),
            ..Self::empty(event_type)
        }
        .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
    }

    /// The status of the answer. Default: 200.
    #[must_use]
    pub fn status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// Adds a header to the answer.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// The handshake brings the secret of the deliveries to come, for
    /// [`Provider::secret_exchange`](crate::Provider::secret_exchange).
    #[must_use]
    pub fn with_secret(mut self, secret: Secret) -> Self {
        self.secret = Some(secret);
        self
    }

    /// The event type that makes the request a handshake.
    pub fn event_type(&self) -> &str {
        &self.event_type
    }

    /// The text that the provider wants back.
    pub fn challenge(&self) -> &str {
        &self.text
    }

    /// The secret that the handshake brings.
    pub fn secret(&self) -> Option<&Secret> {
        self.secret.as_ref()
    }

    /// The response that the provider wants.
    pub fn response<B: From<Bytes>>(self) -> Response<B> {
        let mut response = Response::new(B::from(self.text.into()));
        *response.status_mut() = self.status;
        response.headers_mut().extend(self.headers);
        response
    }
}

type RecognizeFn = Arc<dyn Fn(&HandshakeRequest<'_>) -> Option<Handshake> + Send + Sync>;
type Kept = Pin<Box<dyn Future<Output = Result<(), BoxError>> + Send>>;
type KeepFn = Arc<dyn Fn(&Parts, Secret) -> Kept + Send + Sync>;

/// The handshakes of a provider that are more than data.
#[derive(Clone, Default)]
pub(super) struct Handshakes {
    unsigned: Vec<RecognizeFn>,
    signed: Vec<RecognizeFn>,
    keep_secret: Option<KeepFn>,
}

impl Handshakes {
    pub(super) fn add_unsigned(
        &mut self,
        recognize: impl Fn(&HandshakeRequest<'_>) -> Option<Handshake> + Send + Sync + 'static,
    ) {
        self.unsigned.push(Arc::new(recognize));
    }

    pub(super) fn add_signed(
        &mut self,
        recognize: impl Fn(&HandshakeRequest<'_>) -> Option<Handshake> + Send + Sync + 'static,
    ) {
        self.signed.push(Arc::new(recognize));
    }

    pub(super) fn keep_secret<F>(
        &mut self,
        keep: impl Fn(&Parts, Secret) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        self.keep_secret = Some(Arc::new(move |head, secret| Box::pin(keep(head, secret))));
    }

    pub(super) fn has_unsigned(&self) -> bool {
        !self.unsigned.is_empty()
    }

    pub(super) fn has_signed(&self) -> bool {
        !self.signed.is_empty()
    }

    pub(super) fn unsigned(&self, request: &HandshakeRequest<'_>) -> Option<Handshake> {
        self.unsigned
            .iter()
            .find_map(|recognize| recognize(request))
    }

    pub(super) fn signed(&self, request: &HandshakeRequest<'_>) -> Option<Handshake> {
        self.signed.iter().find_map(|recognize| recognize(request))
    }

    /// Has the secret of a handshake kept.
    pub(super) async fn keep(&self, head: &Parts, secret: &Secret) -> Result<(), BoxError> {
        match &self.keep_secret {
            Some(keep) => keep(head, secret.clone()).await,
            None => Err("nothing keeps it: set `Provider::secret_exchange`".into()),
        }
    }
}

impl fmt::Debug for Handshakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handshakes")
            .field("unsigned", &self.unsigned.len())
            .field("signed", &self.signed.len())
            .field("keeps_secret", &self.keep_secret.is_some())
            .finish()
    }
}

/// A HEAD request, by which some providers check that there is anything at the URL.
pub(super) fn probe(request: &HandshakeRequest<'_>) -> Option<Handshake> {
    (request.method() == Method::HEAD).then(|| Handshake::empty("HEAD"))
}

/// The subscription check of WebSub and Meta, for the one who knows the token.
pub(super) fn subscription(request: &HandshakeRequest<'_>, token: &Secret) -> Option<Handshake> {
    let is_asked = request.method() == Method::GET
        && request.query_value("hub.mode").as_deref() == Some("subscribe");
    let presented = request.query_value("hub.verify_token")?;
    let is_known = super::signature::keyed::is_same(token.expose(), presented.as_bytes());
    let challenge = request.query_value("hub.challenge")?;
    (is_asked && is_known).then(|| Handshake::text("subscribe", challenge))
}
