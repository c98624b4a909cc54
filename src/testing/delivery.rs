//! Test deliveries, built and signed as the provider sends them.

use std::fmt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, Request, Uri};

use super::Capture;
use super::draft::Draft;
use super::sign::sign;
use crate::provider::{CANARY, Provider, Secret, Verified};

/// A delivery as a provider sends it. It can make any number of requests.
///
/// The id, the event type and the time are written where the provider puts them: in a header, or in the JSON body. A
/// [`body`](Self::body) is sent unchanged, with two exceptions: if the body is a JSON object without the delivery id or
/// the signed time, the missing value is added; and if you set an id or an event type that belongs in the body, the
/// value is written into the body.
///
/// ```
/// use idempotent_webhook::testing::TestDelivery;
/// use idempotent_webhook::{Secret, presets};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let github = presets::github(Secret::new("a secret")?);
/// let push = TestDelivery::new(&github).event_type("push").body(r#"{"ref":"main"}"#);
/// let first: http::Request<http_body_util::Full<bytes::Bytes>> = push.request();
/// let forged: http::Request<http_body_util::Full<bytes::Bytes>> = push.tampered().request();
/// assert_eq!(first.headers()["x-github-event"], "push");
/// assert_eq!(first.headers()["x-github-delivery"], forged.headers()["x-github-delivery"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TestDelivery {
    provider: Provider,
    secret: Option<Secret>,
    head: Parts,
    id: Option<String>,
    event_type: Option<String>,
    body: Option<Bytes>,
    at: At,
    fault: Fault,
}

/// The time at which the delivery is signed.
#[derive(Clone, Copy, Debug)]
enum At {
    Now,
    Ago(Duration),
    Time(SystemTime),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    Tampered,
    Unsigned,
}

const ID: &str = "delivery-1";
const EVENT_TYPE: &str = "test";

/// An age that no preset tolerates.
const EXPIRED: Duration = Duration::from_secs(366 * 24 * 60 * 60);

impl TestDelivery {
    /// Creates a delivery from this provider: a preset or a custom provider. The delivery is signed with the provider's
    /// first secret.
    ///
    /// If you wrote the [`SignatureScheme`](crate::provider::signature::SignatureScheme) yourself, it must implement
    /// [`sign`](crate::provider::signature::SignatureScheme::sign).
    pub fn new(provider: &Provider) -> Self {
        let method = provider.methods.first().cloned();
        let mut request = Request::new(());
        *request.method_mut() = method.unwrap_or(Method::POST);
        request
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Self {
            provider: provider.clone(),
            secret: provider.first_secret(),
            head: request.into_parts().0,
            id: None,
            event_type: None,
            body: None,
            at: At::Now,
            fault: Fault::None,
        }
    }

    /// Creates a [canary](crate::documentation::operating#a-canary): a request that the layer verifies, claims and
    /// rolls back without calling the handler.
    ///
    /// ```
    /// use idempotent_webhook::testing::TestDelivery;
    /// use idempotent_webhook::{Secret, presets};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// assert!(TestDelivery::canary(&presets::github(Secret::new("a secret")?)).is_ok());
    /// // The token of Telegram does not cover the body.
    /// assert!(TestDelivery::canary(&presets::telegram(Secret::new("a_secret")?)).is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`TestDeliveryError`] if a canary is not possible: only the provider has the signing key, the signature does not
    /// cover the body, or the signature covers only bodies in another format.
    pub fn canary(provider: &Provider) -> Result<Self, TestDeliveryError> {
        let not_possible = |reason: &dyn fmt::Display| {
            let name = provider.name();
            TestDeliveryError(format!("a canary of {name} is not possible: {reason}"))
        };
        if !provider.signs_body() {
            return Err(not_possible(&"its signature does not cover the body"));
        }
        let canary = Self::new(provider).body(CANARY);
        let (head, body) = canary.parts().map_err(|reason| not_possible(&reason))?;
        match provider.verify(&head, &body, SystemTime::now()) {
            Ok(Verified::Canary) => Ok(canary),
            Ok(_) | Err(_) => Err(not_possible(&"it signs only bodies in another format")),
        }
    }

    /// Creates a delivery from a capture file of this provider. The delivery has the URI, the headers and the body of
    /// [`Capture::into_request`](super::Capture::into_request), and is signed again: the signature, its times and the
    /// other values of the scheme are as if the provider sent the request now. If the body is a form, a line break that
    /// an editor has added at its end is dropped.
    ///
    /// ```no_run
    /// use idempotent_webhook::testing::TestDelivery;
    /// use idempotent_webhook::{Secret, presets};
    ///
    /// let stripe = presets::stripe(Secret::new("whsec_test").unwrap());
    /// let paid = TestDelivery::from_capture(&stripe, "tests/captures/invoice.paid.http");
    /// ```
    ///
    /// # Panics
    ///
    /// If the file cannot be read, or does not contain a captured request.
    #[expect(clippy::panic, reason = "a test names the file, and should fail")]
    pub fn from_capture(provider: &Provider, file: impl AsRef<Path>) -> Self {
        let file = file.as_ref();
        let read = std::fs::read(file).map_err(|error| error.to_string());
        let capture =
            read.and_then(|text| Capture::parse(&text).map_err(|error| error.to_string()));
        match capture {
            Ok(capture) => Self::of_capture(provider, capture),
            Err(error) => panic!("{}: {error}", file.display()),
        }
    }

    fn of_capture(provider: &Provider, capture: Capture) -> Self {
        let (head, mut body) = capture.into_request().into_parts();
        let content_type = head.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        if content_type.is_some_and(|text| text.starts_with(b"application/x-www-form-urlencoded")) {
            body = body.slice_ref(body.trim_ascii_end());
        }
        Self {
            head,
            body: Some(body),
            ..Self::new(provider)
        }
    }

    /// Sets the secret to sign with, for example the secret of a tenant, or the value that the preset takes in place of
    /// a secret, such as the private key that belongs to a public key. If the provider's keys are fetched, give the
    /// private key to the provider with [`KeySource::given`](crate::provider::keys::KeySource::given).
    #[must_use]
    pub fn secret(mut self, secret: impl Into<Secret>) -> Self {
        self.secret = Some(secret.into());
        self
    }

    /// Sets the URI of the request. Default: `/`.
    ///
    /// # Panics
    ///
    /// If the text is not a URI.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a test sets it, and should fail")]
    pub fn uri(mut self, uri: &str) -> Self {
        self.head.uri = uri.parse::<Uri>().expect("a URI");
        self
    }

    /// Adds a header, or sets a `content-type` other than `application/json`.
    ///
    /// # Panics
    ///
    /// If the value is not valid in a header.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a test sets it, and should fail")]
    pub fn header(mut self, name: HeaderName, value: &str) -> Self {
        let value = HeaderValue::from_str(value).expect("a header value");
        self.head.headers.insert(name, value);
        self
    }

    /// Sets the delivery id. Default: the id in the body, or `delivery-1`.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sets the event type. Default: the type in the body, or `test`. For GitHub, `pull_request.opened` also sets the
    /// action in the body.
    #[must_use]
    pub fn event_type(mut self, event_type: impl Into<String>) -> Self {
        self.event_type = Some(event_type.into());
        self
    }

    /// Sets the body, which is copied. Default: a JSON object with the members that the provider puts in the body.
    #[must_use]
    pub fn body(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body = Some(Bytes::copy_from_slice(body.as_ref()));
        self
    }

    /// Sets the time of the signature. Default: when [`request`](Self::request) is called.
    #[must_use]
    pub fn at(mut self, time: SystemTime) -> Self {
        self.at = At::Time(time);
        self
    }

    /// Returns the same delivery, signed a year ago. This is too old for any preset that signs a time.
    #[must_use]
    pub fn expired(&self) -> Self {
        Self {
            at: At::Ago(EXPIRED),
            ..self.clone()
        }
    }

    /// Returns the same delivery with a body that was changed after signing: a space is added at the end. The request
    /// is rejected if the signature [covers every byte of the body](Provider::signs_body). Otherwise, change a signed
    /// part of the request yourself.
    #[must_use]
    pub fn tampered(&self) -> Self {
        Self {
            fault: Fault::Tampered,
            ..self.clone()
        }
    }

    /// Returns the same delivery without a signature.
    #[must_use]
    pub fn unsigned(&self) -> Self {
        Self {
            fault: Fault::Unsigned,
            ..self.clone()
        }
    }

    /// Makes a request from this delivery, with axum's `Body` or any other body that can be made from bytes.
    ///
    /// Each further call makes a retry: the same delivery, signed again.
    ///
    /// # Panics
    ///
    /// If the request cannot be made: there is no place for the id or the event type in the request, there is no
    /// secret, or the signature scheme cannot sign.
    #[expect(
        clippy::panic,
        reason = "a test sets what it is made of, and should fail"
    )]
    pub fn request<B: From<Bytes>>(&self) -> Request<B> {
        match self.try_request() {
            Ok(request) => request,
            Err(error) => panic!("{error}"),
        }
    }

    /// Like [`request`](Self::request), for tools in which users enter the parts of the delivery.
    ///
    /// # Errors
    ///
    /// [`TestDeliveryError`] if the request cannot be made.
    pub fn try_request<B: From<Bytes>>(&self) -> Result<Request<B>, TestDeliveryError> {
        match self.parts() {
            Ok((head, body)) => Ok(Request::from_parts(head, B::from(body))),
            Err(reason) => Err(TestDeliveryError(format!(
                "no delivery of {}: {reason}",
                self.provider.name()
            ))),
        }
    }

    fn parts(&self) -> Result<(Parts, Bytes), String> {
        let identity = self.provider.identity();
        let body = self.body.clone();
        let mut draft = Draft::new(self.head.clone(), body.unwrap_or_else(|| "{}".into()));

        let default_type = self.body.is_none().then_some(EVENT_TYPE);
        let mut event_type = self.event_type.as_deref();
        if let Some(source) = identity.event_action()
            && let Some((bare, action)) = event_type.and_then(|name| name.rsplit_once('.'))
        {
            event_type = Some(bare);
            draft.write(source, action)?;
        }
        if let Some(source) = identity.event_type() {
            match (event_type, default_type) {
                (Some(event_type), _) => draft.write(source, event_type)?,
                (None, Some(event_type)) => draft.fill(source, event_type)?,
                (None, None) => draft.fill_headers(source, EVENT_TYPE)?,
            }
        }
        match &self.id {
            Some(id) => draft.write(identity.id(), id)?,
            // A handshake request has no id.
            None if draft.is_handshake(identity) => {}
            None => draft.fill(identity.id(), ID)?,
        }

        let time = match self.at {
            At::Now => SystemTime::now(),
            At::Ago(age) => SystemTime::now() - age,
            At::Time(time) => time,
        };
        let (head, body) = draft.into_parts();
        if self.fault == Fault::Unsigned {
            return Ok((head, body));
        }
        let secret = self.secret.as_ref().ok_or(
            "it has no secret: its provider looks up secrets by tenant, so set one with `secret`",
        )?;
        let request = Request::from_parts(head, body);
        let signed = sign(&self.provider, secret, request, time);
        let (head, mut body) = signed.map_err(|error| error.to_string())?.into_parts();
        if self.fault == Fault::Tampered {
            // The added byte is white space, so that the body is still valid JSON.
            body = [&*body, b" "].concat().into();
        }
        Ok((head, body))
    }
}

/// The reason why the request of a [`TestDelivery`] cannot be made.
#[derive(Clone, Debug)]
pub struct TestDeliveryError(String);

impl fmt::Display for TestDeliveryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TestDeliveryError {}
