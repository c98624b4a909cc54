//! The extractors for axum handlers.

use axum_core::extract::FromRequestParts;
use axum_core::response::{IntoResponse, Response};
use http::StatusCode;
use http::request::Parts;

use crate::delivery::Delivery;
use crate::tx::{DedupeTx, ExtractError};

impl<S: Sync> FromRequestParts<S> for DedupeTx {
    type Rejection = ExtractError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ExtractError> {
        Self::take(&parts.extensions)
    }
}

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

/// A 500 that tells the sender nothing, and the operator, in the log, what to do.
impl IntoResponse for ExtractError {
    fn into_response(self) -> Response {
        tracing::error!(reason = %self, "the webhook handler could not be called");
        (StatusCode::INTERNAL_SERVER_ERROR, "internal error").into_response()
    }
}
