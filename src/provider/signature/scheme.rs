//! The trait of all signature schemes.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::header::HeaderName;
use http::request::Parts;
use http::{HeaderMap, Method, Uri};

use super::PublicKey;
use super::sign::{SignError, UnsignedRequest};
use crate::provider::keys::{KeyRequest, KeySet, KeySource, Wanted};
use crate::provider::public_url::{PublicUrl, path_and_query, public_path_and_query};
use crate::provider::{Secret, SecretError, Secrets};

/// How a provider proves that a request is its own.
///
/// For most providers, the settings of [`Hmac`](super::Hmac) are enough. For providers that follow the Standard
/// Webhooks specification, there is [`StandardWebhooks`](super::StandardWebhooks). Implement this trait for any other
/// scheme, and pass the value to [`CustomProvider::signature`](crate::provider::CustomProvider::signature).
///
/// ```
/// use http::HeaderName;
/// use idempotent_webhook::provider::signature::{
///     SignError, SignatureError, SignatureScheme, Signed, SignedRequest, UnsignedRequest,
/// };
/// use idempotent_webhook::{Provider, Secret, Secrets, Source};
///
/// const TOKEN: HeaderName = HeaderName::from_static("x-acme-token");
///
/// /// Acme sends the secret itself, in a header.
/// #[derive(Debug)]
/// struct Token;
///
/// impl SignatureScheme for Token {
///     fn verify(
///         &self,
///         request: &SignedRequest<'_>,
///         secrets: &Secrets,
///     ) -> Result<Signed, SignatureError> {
///         let token = request
///             .headers()
///             .get(&TOKEN)
///             .ok_or(SignatureError::MissingHeader(TOKEN))?;
///         let matches = |secret: &Secret| same(secret.expose(), token.as_bytes());
///         if secrets.iter().any(matches) {
///             Ok(Signed::new())
///         } else {
///             Err(SignatureError::NoMatch)
///         }
///     }
///
///     fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
///         request.insert_header(TOKEN, secret.expose())
///     }
/// }
///
/// /// Compares in constant time: the time does not reveal where the first difference is.
/// fn same(a: &[u8], b: &[u8]) -> bool {
///     a.len() == b.len() && a.iter().zip(b).fold(0, |diff, (a, b)| diff | (a ^ b)) == 0
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let acme = Provider::custom("acme")
///     .signature(Token, Secret::new("a secret")?)
///     .delivery_id(Source::json("$.id".parse()?));
///
/// let (head, ()) = http::Request::post("/").header(TOKEN, "a secret").body(())?.into_parts();
/// let now = std::time::SystemTime::now();
/// assert!(acme.verify(&head, br#"{"id":"1"}"#, now).is_ok());
/// let (head, ()) = http::Request::post("/").header(TOKEN, "another").body(())?.into_parts();
/// assert!(acme.verify(&head, br#"{"id":"1"}"#, now).is_err());
/// # Ok(())
/// # }
/// ```
pub trait SignatureScheme: fmt::Debug + Send + Sync + 'static {
    /// Rejects requests that can be rejected by their head alone, before the body is read.
    ///
    /// # Errors
    ///
    /// A [`SignatureError`] if no body could make this request authentic.
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        let _ = head;
        Ok(())
    }

    /// Verifies the signature of a request against any of `secrets`.
    ///
    /// The age of the signature is checked afterwards, by [`Tolerance`](super::Tolerance).
    ///
    /// Compare MACs in constant time.
    ///
    /// # Errors
    ///
    /// A [`SignatureError`] that says why the request is not authentic.
    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError>;

    /// The headers whose values the signature covers. A delivery id in one of them cannot be
    /// forged.
    fn signed_headers(&self) -> &[HeaderName] {
        &[]
    }

    /// Whether the signature covers the body. If it does not, anyone who has captured one request
    /// can send any body with its signature, and an id in the body can be forged.
    fn signs_body(&self) -> bool {
        true
    }

    /// Whether the signature covers every byte of the body.
    ///
    /// Return `false` if the decoded fields of an HTML form are signed. Anyone who has captured such a request can
    /// encode the same fields in another way, which gives the body another digest. Default:
    /// [`signs_body`](Self::signs_body).
    fn signs_body_bytes(&self) -> bool {
        self.signs_body()
    }

    /// Whether the signature covers a time, which [`verify`](Self::verify) returns with [`Signed::at`]. Return
    /// `true` even if the scheme signs a time only in some requests. Default: `false`.
    fn signs_time(&self) -> bool {
        false
    }

    /// Whether the signature covers [`SignedRequest::url`], or a part of the URL that is known only with
    /// [`Provider::public_url`](crate::Provider::public_url). If it does and a signature does not match, the log also
    /// names the URL as a possible cause.
    fn signs_url(&self) -> bool {
        false
    }

    /// Whether no request can be verified without [`Provider::public_url`](crate::Provider::public_url). If so,
    /// creating a layer for a provider without a public URL panics. Default: [`signs_url`](Self::signs_url).
    fn needs_public_url(&self) -> bool {
        self.signs_url()
    }

    /// The exact bytes that the signature of a request covers, to find out why a signature does not match.
    ///
    /// They contain nothing of the secret. Default: `None`, which means that the scheme does not reveal them.
    ///
    /// # Errors
    ///
    /// A [`SignatureError`] if the request lacks a part of the content.
    fn signed_content(
        &self,
        request: &SignedRequest<'_>,
    ) -> Result<Option<Vec<u8>>, SignatureError> {
        let _ = request;
        Ok(None)
    }

    /// The scheme in a few words, such as ``HMAC-SHA256 in hex, `x-hub-signature-256` ``.
    fn description(&self) -> Cow<'static, str> {
        Cow::Borrowed("custom")
    }

    /// Whether the signature covers the [`Signed::value`] of this name. Default: `true` if it [covers the
    /// body](Self::signs_body).
    fn signs_value(&self, name: &str) -> bool {
        let _ = name;
        self.signs_body()
    }

    /// Whether requests are verified with [keys](SignedRequest::keys) that are not among the secrets. If so,
    /// [`Provider::keys`](crate::Provider::keys) must be set. Default: `false`.
    fn needs_keys(&self, secrets: &Secrets) -> bool {
        let _ = secrets;
        false
    }

    /// Whether the scheme takes secrets. If it does, it must not accept a request when there are no secrets, and a
    /// [`KeySource`] cannot replace the secrets. Default: `true`.
    fn takes_secrets(&self) -> bool {
        true
    }

    /// A secret that the scheme can use and that belongs to nobody.
    ///
    /// A request for an unknown tenant is verified with it, so that the verification takes about the same work as for a
    /// known tenant. The response time may still reveal a difference, because it depends on the number of a tenant's
    /// secrets and, if keys are fetched, on the fetches. Default: a short text in base64.
    fn dummy_secret(&self) -> Secret {
        Secret::dummy()
    }

    /// The query parameters that contain a secret. The layer leaves them out of the requests that it stores. Default:
    /// none.
    fn secret_parameters(&self) -> &'static [&'static str] {
        &[]
    }

    /// Checks, when the layer is created, that the scheme can use a secret.
    ///
    /// # Errors
    ///
    /// [`SecretError`] if no signature could match with this secret.
    fn check_secret(&self, secret: &Secret) -> Result<(), SecretError> {
        let _ = secret;
        Ok(())
    }

    /// Signs a request as the provider does, for `TestDelivery` of the feature `testing`.
    ///
    /// # Errors
    ///
    /// [`SignError`] if the scheme cannot sign, which is the default, or cannot sign with this secret.
    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        let _ = (request, secret);
        Err(SignError::new("the scheme does not implement `sign`"))
    }
}

/// A request to verify.
#[derive(Clone, Copy, Debug)]
pub struct SignedRequest<'a> {
    head: &'a Parts,
    body: &'a [u8],
    public_url: Option<&'a PublicUrl>,
    keys: Option<&'a KeySource>,
    tried: &'a [TriedFetch],
}

impl<'a> SignedRequest<'a> {
    /// A request with its exact raw body.
    ///
    /// Such a request does not know the URL that the provider called. The request that
    /// [`Provider::verify`](crate::Provider::verify) passes to a scheme knows it from
    /// [`Provider::public_url`](crate::Provider::public_url).
    pub fn new(head: &'a Parts, body: &'a [u8]) -> Self {
        Self {
            head,
            body,
            public_url: None,
            keys: None,
            tried: &[],
        }
    }

    pub(crate) fn public_url(mut self, base: Option<&'a PublicUrl>) -> Self {
        self.public_url = base;
        self
    }

    pub(crate) fn key_source(
        mut self,
        keys: Option<&'a KeySource>,
        tried: &'a [TriedFetch],
    ) -> Self {
        self.keys = keys;
        self.tried = tried;
        self
    }

    /// The keys at an address, if at least one of them has this id or no id. If `id` is `None`, the ids do not matter.
    ///
    /// If a key must be fetched and [`Provider::keys`](crate::Provider::keys) allows it, the layer fetches the keys
    /// and verifies the request again.
    ///
    /// # Errors
    ///
    /// [`SignatureError::KeyNotFetched`] if the keys must be fetched first, [`SignatureError::UnknownKey`] if no
    /// key has this id.
    pub fn keys(
        &self,
        request: &KeyRequest,
        id: Option<&str>,
    ) -> Result<Arc<KeySet>, SignatureError> {
        self.look_up(request, id.map_or(Wanted::Any, Wanted::Id))
    }

    /// Checks that the request is signed with the key of this id at an address or, if the request names no id, with any
    /// of the keys at that address.
    pub(crate) fn check_signed_with_key_at(
        &self,
        request: &KeyRequest,
        id: Option<&str>,
        has_signed: impl Fn(&PublicKey) -> bool,
    ) -> Result<(), SignatureError> {
        let keys = self.keys(request, id)?;
        let is_signed = match id {
            Some(id) => keys.with_id(id).any(has_signed),
            None => keys.iter().any(has_signed),
        };
        match (is_signed, id) {
            (true, _) => Ok(()),
            (false, Some(_)) => Err(self.no_match_of_key_at(request)),
            // The request names no key, and the provider may have a new one.
            (false, None) => Err(self.no_match(request, Wanted::Newer)),
        }
    }

    /// The error of a request that is not signed with the key that it names.
    pub(crate) fn no_match_of_key_at(&self, request: &KeyRequest) -> SignatureError {
        self.no_match(request, Wanted::Changed)
    }

    fn no_match(&self, request: &KeyRequest, wanted: Wanted<'_>) -> SignatureError {
        match self.look_up(request, wanted) {
            Err(needed @ SignatureError::KeyNotFetched(_)) => needed,
            Ok(_) | Err(_) => SignatureError::NoMatch,
        }
    }

    /// Whether the error asks for a key that has not been tried for this request yet.
    #[cfg(any(feature = "p256", feature = "rsa"))]
    pub(super) fn may_fetch(&self, error: &SignatureError) -> bool {
        match error {
            SignatureError::KeyNotFetched(needed) => {
                !self.tried.iter().any(|tried| tried.needed == *needed)
            }
            _ => false,
        }
    }

    fn look_up(
        &self,
        request: &KeyRequest,
        wanted: Wanted<'_>,
    ) -> Result<Arc<KeySet>, SignatureError> {
        match self.keys {
            Some(keys) => {
                let tried = self.tried.iter().find(|tried| tried.needed.is_of(request));
                keys.look_up(request, wanted, tried.is_some_and(|tried| tried.was_asked))
            }
            None => Err(SignatureError::KeyNotFetched(KeyNotFetched::new(
                request,
                "`Provider::keys` is not set",
            ))),
        }
    }

    /// The keys of [`KeySource::given`], for schemes that fetch no keys.
    #[cfg(feature = "x509")]
    pub(crate) fn given_keys(&self) -> Option<&'a KeySet> {
        self.keys?.get_given().map(|keys| &**keys)
    }

    /// The method.
    pub fn method(&self) -> &'a Method {
        &self.head.method
    }

    /// The URL that the provider called: its public base, followed by the exact path and query.
    ///
    /// # Errors
    ///
    /// [`SignatureError::NoPublicUrl`] if the base is not known.
    pub fn url(&self) -> Result<String, SignatureError> {
        let base = self.public_url.ok_or(SignatureError::NoPublicUrl)?;
        Ok(base.url_of(self.head))
    }

    /// The path and the query of [`url`](Self::url) or, without a public URL, the path and the query that the
    /// server received.
    pub fn public_path_and_query(&self) -> String {
        public_path_and_query(self.public_url, self.head)
    }

    /// The path and the query as the server received them, even under axum's `Router::nest`.
    pub fn path_and_query(&self) -> &'a str {
        path_and_query(self.head)
    }

    /// The URI. Under axum's `Router::nest`, it lacks the prefix, which [`path_and_query`](Self::path_and_query)
    /// includes.
    pub fn uri(&self) -> &'a Uri {
        &self.head.uri
    }

    /// The headers.
    pub fn headers(&self) -> &'a HeaderMap {
        &self.head.headers
    }

    /// The raw body.
    pub fn body(&self) -> &'a [u8] {
        self.body
    }
}

/// What a valid signature says about its request.
#[derive(Clone, Debug, Default)]
pub struct Signed {
    time: Option<SystemTime>,
    values: Vec<(&'static str, String)>,
    valid_from: Option<SystemTime>,
    expires: Option<SystemTime>,
}

impl Signed {
    /// A signature that covers no time.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the time of signing, which the signature covers.
    #[must_use]
    pub fn at(mut self, time: SystemTime) -> Self {
        self.time = Some(time);
        self
    }

    /// Makes the signature count only from this time on, regardless of the tolerance.
    #[must_use]
    pub fn valid_from(mut self, time: SystemTime) -> Self {
        self.valid_from = Some(time);
        self
    }

    /// Makes the signature count only until this time, regardless of the tolerance.
    #[must_use]
    pub fn expires(mut self, time: SystemTime) -> Self {
        self.expires = Some(time);
        self
    }

    pub(crate) fn check_validity(&self, now: SystemTime) -> Result<(), SignatureError> {
        if let Some(ahead) = self
            .valid_from
            .and_then(|from| from.duration_since(now).ok())
            && !ahead.is_zero()
        {
            return Err(SignatureError::NotYetValid { starts_in: ahead });
        }
        match self.expires.map(|end| now.duration_since(end)) {
            Some(Ok(ago)) => Err(SignatureError::Expired { ago }),
            Some(Err(_)) | None => Ok(()),
        }
    }

    /// Adds a value that the scheme has read, such as a claim of a token or a field of a form, for
    /// [`Source::signed_value`](crate::Source::signed_value).
    #[must_use]
    pub fn value(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.values.push((name, value.into()));
        self
    }

    /// The value of this name, if the scheme has read one.
    pub fn get_value(&self, name: &str) -> Option<&str> {
        let mut values = self.values.iter();
        values
            .find(|(known, _)| *known == name)
            .map(|(_, value)| &**value)
    }

    /// The time of signing, if the signature covers it.
    pub fn time(&self) -> Option<SystemTime> {
        self.time
    }
}

/// Why a request is not authentic.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SignatureError {
    /// The request lacks this header.
    MissingHeader(HeaderName),
    /// This header is not in the form that the scheme prescribes, or is repeated.
    MalformedHeader(HeaderName),
    /// The body is not in the form that the scheme prescribes: for example, it lacks the signature.
    MalformedBody,
    /// The provider signs the URL that it calls, and
    /// [`Provider::public_url`](crate::Provider::public_url) is not set.
    NoPublicUrl,
    /// The signature is well-formed, but does not match this request with any of the secrets.
    NoMatch,
    /// No signature matches, and the scheme cannot use one of the secrets: the secret is not base64, or is a key of
    /// another kind.
    UnusableSecret,
    /// The key was not fetched yet, or could not be fetched. The layer rejects such a request with 503, so that the
    /// provider sends it again.
    KeyNotFetched(KeyNotFetched),
    /// The request says that it is signed by an algorithm other than the provider's.
    OtherAlgorithm,
    /// The signature uses an algorithm that needs this crate's feature of this name.
    FeatureOff(&'static str),
    /// The provider has no key with the id that the request names.
    UnknownKey,
    /// The certificates do not lead to a certificate of the provider, or are not valid. Feature `x509`.
    #[cfg(feature = "x509")]
    Certificate(super::x509::CertificateError),
    /// The request is for a receiver, or from a sender, other than the configured one. The text says which part of the
    /// request shows it.
    NotForUs(&'static str),
    /// The request names no tenant, or a tenant whose name is not usable, so there is no secret.
    NoTenant,
    /// The tenant is unknown, so there is no secret.
    UnknownTenant,
    /// The signature is valid, but the signed body has no usable time where the scheme needs
    /// one.
    NoTimestamp,
    /// The signature is valid, but older than [`Provider::tolerance`](crate::Provider::tolerance) allows.
    TooOld {
        /// How long ago it was signed, by this machine's clock.
        age: Duration,
        /// What the tolerance allows.
        limit: Duration,
    },
    /// The signature is valid, but further in the future than
    /// [`Provider::tolerance`](crate::Provider::tolerance) allows.
    TooNew {
        /// How far in the future it was signed, by this machine's clock.
        ahead: Duration,
        /// What the tolerance allows.
        limit: Duration,
    },
    /// The signature is valid, but has [expired](Signed::expires) by its own time.
    Expired {
        /// How long ago, by this machine's clock.
        ago: Duration,
    },
    /// The signature matches, but by its own time it is [not valid yet](Signed::valid_from).
    NotYetValid {
        /// How long until it is valid, by this machine's clock.
        starts_in: Duration,
    },
}

impl fmt::Display for SignatureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingHeader(name) => write!(f, "header {name} is missing"),
            Self::MalformedHeader(name) => write!(f, "header {name} is malformed"),
            Self::MalformedBody => {
                f.write_str("the body has no signature, or does not have the signed form")
            }
            Self::NoPublicUrl => f.write_str(
                "the signature covers the URL that the provider calls: set it with `Provider::public_url`",
            ),
            Self::NoMatch => f.write_str(
                "signature matches none of the secrets: another secret, or a body that was changed \
                 on the way",
            ),
            Self::UnusableSecret => {
                f.write_str("signature matches none of the secrets, and one of them is unusable")
            }
            Self::KeyNotFetched(needed) => needed.fmt(f),
            Self::FeatureOff(feature) => write!(
                f,
                "the signature can only be verified with this crate's feature `{feature}`, which is off"
            ),
            Self::OtherAlgorithm => {
                f.write_str("the request is signed by another algorithm than the provider's")
            }
            Self::UnknownKey => f.write_str("the provider has no key of the id in the request"),
            #[cfg(feature = "x509")]
            Self::Certificate(error) => error.fmt(f),
            Self::NotForUs(part) => write!(f, "the request is not for us: {part}"),
            Self::NoTenant => f.write_str(
                "the function of TenantSecrets found no tenant in the request, or one whose name is not usable",
            ),
            Self::UnknownTenant => {
                f.write_str("the lookup of TenantSecrets does not know the tenant")
            }
            Self::NoTimestamp => f.write_str("the signed body has no usable timestamp"),
            Self::TooOld { age, limit } => write!(
                f,
                "signed {} s ago, {} s are allowed (`tolerance`): is this clock right?",
                age.as_secs(),
                limit.as_secs()
            ),
            Self::TooNew { ahead, limit } => write!(
                f,
                "signed {} s in the future, {} s are allowed (`tolerance`): is this clock right?",
                ahead.as_secs(),
                limit.as_secs()
            ),
            Self::Expired { ago } => write!(
                f,
                "the signature expired {} s ago: is this clock right?",
                ago.as_secs()
            ),
            Self::NotYetValid { starts_in } => write!(
                f,
                "the signature is not valid for another {} s: is this clock right?",
                starts_in.as_secs()
            ),
        }
    }
}

impl std::error::Error for SignatureError {}

/// A key that must be fetched before a request can be verified.
///
/// [`Provider::verify_fetching`](crate::Provider::verify_fetching) fetches it.
#[derive(Clone, Debug)]
pub struct KeyNotFetched(Arc<(KeyRequest, String)>);

impl KeyNotFetched {
    pub(crate) fn new(request: &KeyRequest, reason: &str) -> Self {
        Self(Arc::new((request.clone(), reason.to_owned())))
    }

    fn is_of(&self, request: &KeyRequest) -> bool {
        self.0.0.id() == request.id()
    }

    /// The address to ask.
    pub fn request(&self) -> &KeyRequest {
        &self.0.0
    }
}

/// A fetch that was tried for a request.
#[derive(Debug)]
pub(crate) struct TriedFetch {
    pub(crate) needed: KeyNotFetched,
    /// Whether the address could be asked, regardless of whether it answered.
    pub(crate) was_asked: bool,
}

impl PartialEq for KeyNotFetched {
    fn eq(&self, other: &Self) -> bool {
        self.is_of(other.request())
    }
}

impl Eq for KeyNotFetched {}

impl fmt::Display for KeyNotFetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (request, reason) = &*self.0;
        write!(f, "no key of {}: {reason}", request.host())
    }
}

#[cfg(feature = "x509")]
impl From<super::x509::CertificateError> for SignatureError {
    fn from(error: super::x509::CertificateError) -> Self {
        Self::Certificate(error)
    }
}
