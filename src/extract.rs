//! What axum handlers take and return, with and without Postgres.

use std::convert::Infallible;

use axum_core::extract::{FromRequestParts, OptionalFromRequestParts};
use axum_core::response::{IntoResponse, IntoResponseParts, Response, ResponseParts};
use http::request::Parts;

use crate::delivery::Delivery;
use crate::extract_error::ExtractError;
use crate::handler_error::{FailureReason, HandlerError};

impl<S: Sync> FromRequestParts<S> for Delivery {
    type Rejection = ExtractError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ExtractError> {
        parts
            .extensions
            .get()
            .cloned()
            .ok_or(ExtractError::MissingLayer)
    }
}

/// `None` on a route without the layer.
impl<S: Sync> OptionalFromRequestParts<S> for Delivery {
    type Rejection = ExtractError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Self>, ExtractError> {
        Ok(parts.extensions.get().cloned())
    }
}

/// A 500. The sender learns nothing more; the log says what to do.
impl IntoResponse for ExtractError {
    fn into_response(self) -> Response {
        tracing::error!(
            reason = self.to_string(),
            "the webhook handler could not be called"
        );
        let mut response = (self.status(), self.body_text()).into_response();
        response.extensions_mut().insert(FailureReason::new(self));
        response
    }
}

impl IntoResponse for HandlerError {
    fn into_response(self) -> Response {
        Self::into_response(self)
    }
}

/// Adds the reason to a response with a status and a body of its own:
/// `(status, HandlerError::from(error), body)`.
impl IntoResponseParts for HandlerError {
    type Error = Infallible;

    fn into_response_parts(self, mut parts: ResponseParts) -> Result<ResponseParts, Infallible> {
        parts.extensions_mut().insert(self.into_reason());
        Ok(parts)
    }
}
