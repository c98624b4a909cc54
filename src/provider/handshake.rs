//! Handshakes: requests by which a provider checks that the endpoint is there.

use std::borrow::Cow;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};

use super::source::Source;

/// How a provider's handshake is recognized and answered.
#[derive(Clone, Debug)]
pub(super) struct HandshakeRule {
    /// The event type of an authentic request without a delivery id.
    pub(super) event_type: Cow<'static, str>,
    /// The text that the provider wants back.
    pub(super) challenge: Source,
}

/// An authentic request by which the provider checks that the endpoint is there, such as
/// Slack's `url_verification`.
///
/// The layer answers it. After [`Provider::verify`](crate::Provider::verify) the caller has to
/// answer with [`response`](Self::response).
#[derive(Clone, Debug)]
pub struct Handshake {
    pub(super) event_type: String,
    pub(super) challenge: String,
}

impl Handshake {
    /// The event type that makes the request a handshake.
    pub fn event_type(&self) -> &str {
        &self.event_type
    }

    /// The text that the provider wants back.
    pub fn challenge(&self) -> &str {
        &self.challenge
    }

    /// The response that the provider wants: 200 with the challenge as plain text.
    pub fn response<B: From<Bytes>>(self) -> Response<B> {
        let mut response = Response::new(B::from(self.challenge.into()));
        *response.status_mut() = StatusCode::OK;
        response.headers_mut().insert(
            CONTENT_TYPE,
            HeaderValue::from_static("text/plain; charset=utf-8"),
        );
        response
    }
}
