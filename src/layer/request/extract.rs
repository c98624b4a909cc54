//! The extractors with which axum handlers take a claim.

use axum_core::extract::{FromRequestParts, OptionalFromRequestParts};
use axum_core::response::{IntoResponse, Response};
use http::StatusCode;
use http::request::Parts;

use crate::layer::extract::logged;
use crate::tasks_and_errors::extract_error::ExtractError;
use crate::tasks_and_errors::handler_error::HandlerError;
use crate::transaction::{BeginError, DedupeTx, LateClaim};

impl<S: Sync> FromRequestParts<S> for DedupeTx {
    type Rejection = ExtractError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ExtractError> {
        Self::take(&parts.extensions).map_err(|error| logged(error, parts))
    }
}

impl<S: Sync> FromRequestParts<S> for LateClaim {
    type Rejection = ExtractError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ExtractError> {
        Self::take(&parts.extensions).map_err(|error| logged(error, parts))
    }
}

/// `None` on a route without the layer.
impl<S: Sync> OptionalFromRequestParts<S> for DedupeTx {
    type Rejection = ExtractError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Self>, ExtractError> {
        match Self::take(&parts.extensions) {
            Ok(tx) => Ok(Some(tx)),
            Err(ExtractError::MissingLayer) => Ok(None),
            Err(error) => Err(logged(error, parts)),
        }
    }
}

/// Answers 503. The layer replaces this response with its own, whose status depends on why the
/// claim failed.
impl IntoResponse for BeginError {
    fn into_response(self) -> Response {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        HandlerError::from(self).status(status).into_response()
    }
}
