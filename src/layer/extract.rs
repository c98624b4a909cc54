//! `Delivery` as an extractor, and errors as responses, without Postgres. `DedupeTx` and `LateClaim` are extracted in
//! `request/extract.rs`.

use std::convert::Infallible;

use axum_core::extract::{FromRequestParts, OptionalFromRequestParts};
use axum_core::response::{IntoResponse, IntoResponseParts, Response, ResponseParts};
use http::request::Parts;

use super::route::{method_of, route_of};
use crate::provider::delivery::Delivery;
use crate::tasks_and_errors::extract_error::ExtractError;
use crate::tasks_and_errors::handler_error::{FailureReason, HandlerError};

impl<S: Sync> FromRequestParts<S> for Delivery {
    type Rejection = ExtractError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ExtractError> {
        let delivery = parts.extensions.get().cloned();
        delivery.ok_or_else(|| logged(ExtractError::MissingLayer, parts))
    }
}

/// `None` on a route without the layer.
impl<S: Sync> OptionalFromRequestParts<S> for Delivery {
    type Rejection = ExtractError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Self>, ExtractError> {
        Ok(parts.extensions.get().cloned())
    }
}

/// Logs that an extractor has failed. The event contains the route, because on a route without the layer, no span
/// contains it.
pub(crate) fn logged(error: ExtractError, head: &Parts) -> ExtractError {
    tracing::error!(
        method = method_of(head),
        route = route_of(head),
        reason = error.to_string(),
        "the webhook handler could not be called"
    );
    error
}

/// Answers 500. The response gives no reason; the extractor has logged the reason and what to do.
impl IntoResponse for ExtractError {
    fn into_response(self) -> Response {
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

/// Adds the reason to a response that has its own status and body: `(status, HandlerError::from(error), body)`.
impl IntoResponseParts for HandlerError {
    type Error = Infallible;

    fn into_response_parts(self, mut parts: ResponseParts) -> Result<ResponseParts, Infallible> {
        parts.extensions_mut().insert(self.into_reason());
        Ok(parts)
    }
}
