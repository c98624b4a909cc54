//! The status of a request that is rejected, 4xx, or that failed: 503 or 500.

use http::StatusCode;

use super::body::BodyError;
use super::failure::Failure;
use super::rejection::Rejection;
use crate::provider::Provider;
use crate::provider::signature::SignatureError;
use crate::transaction::CommitError;

impl Rejection {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Method(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::Signature(SignatureError::KeyNotFetched(_)) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Signature(_) => StatusCode::UNAUTHORIZED,
            Self::Identity(_) | Self::Body(BodyError::Broken(_)) => StatusCode::BAD_REQUEST,
            Self::Body(BodyError::TooLarge) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Body(BodyError::TooSlow) => StatusCode::REQUEST_TIMEOUT,
        }
    }

    /// The status, or another one that the provider wants for it.
    pub(super) fn status_for(&self, provider: &Provider) -> StatusCode {
        match self {
            Self::Signature(SignatureError::KeyNotFetched(_)) => {
                provider.get_failure_status().unwrap_or(self.status())
            }
            Self::Signature(_) => provider.get_rejection_status(),
            // The same delivery may arrive the next time.
            Self::Body(BodyError::TooSlow | BodyError::Broken(_)) => {
                provider.get_failure_status().unwrap_or(self.status())
            }
            Self::Method(_) | Self::Identity(_) | Self::Body(BodyError::TooLarge) => self.status(),
        }
    }
}

impl Failure {
    /// 503 if a retry may succeed without a change of the application, 500 otherwise.
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::SecretLookup(_)
            | Self::Handshake(_)
            | Self::Claim(_)
            | Self::Acceptance(_)
            | Self::QuotaExhausted
            | Self::Superseded
            | Self::HandlerTimedOut(_)
            | Self::Cancelled
            | Self::Commit(CommitError::Database(_)) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Nested
            | Self::HandlerPanicked(_)
            | Self::Outlived
            | Self::Commit(CommitError::Aborted | CommitError::TransactionReplaced) => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
        }
    }
}
