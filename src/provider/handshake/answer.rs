//! The answer to a handshake, such as Slack's `url_verification`.

use std::borrow::Cow;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::{Response, StatusCode};

use crate::provider::Secret;

/// A request with which the provider checks that the endpoint exists, such as Slack's `url_verification`.
///
/// The layer answers it. If you call [`Provider::verify`](crate::Provider::verify) yourself, answer with
/// [`response`](Self::response).
#[derive(Clone, Debug)]
pub struct Handshake {
    event_type: Cow<'static, str>,
    status: StatusCode,
    text: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    secret: Option<Secret>,
    confirm_at: Option<String>,
}

impl Handshake {
    /// A handshake that is answered with 200 and no body. Logs show the event type as its name.
    pub fn empty(event_type: impl Into<Cow<'static, str>>) -> Self {
        Self {
            event_type: event_type.into(),
            status: StatusCode::OK,
            text: String::new(),
            headers: Vec::new(),
            secret: None,
            confirm_at: None,
        }
    }

    /// A handshake that is answered with 200 and a plain text. Anyone may have chosen the text, so the header
    /// `X-Content-Type-Options: nosniff` keeps a browser from showing it as a page.
    pub fn text(event_type: impl Into<Cow<'static, str>>, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::empty(event_type)
        }
        .header(
            CONTENT_TYPE,
            HeaderValue::from_static("text/plain; charset=utf-8"),
        )
        .header(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))
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

    /// Adds the secret that the handshake carries. Later deliveries are signed with it: see
    /// [`Provider::secret_exchange`](crate::Provider::secret_exchange).
    #[must_use]
    pub fn with_secret(mut self, secret: Secret) -> Self {
        self.secret = Some(secret);
        self
    }

    /// Adds an address that is visited with a GET before the handshake is answered: see
    /// [`Provider::confirm_subscription`](crate::Provider::confirm_subscription).
    #[must_use]
    pub fn confirmed_at(mut self, url: impl Into<String>) -> Self {
        self.confirm_at = Some(url.into());
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

    /// The secret that the handshake carries.
    pub fn secret(&self) -> Option<&Secret> {
        self.secret.as_ref()
    }

    /// The address that is visited before the handshake is answered.
    pub fn confirmation_url(&self) -> Option<&str> {
        self.confirm_at.as_deref()
    }

    /// The response that the provider wants.
    pub fn response<B: From<Bytes>>(self) -> Response<B> {
        let mut response = Response::new(B::from(self.text.into()));
        *response.status_mut() = self.status;
        response.headers_mut().extend(self.headers);
        response
    }
}
