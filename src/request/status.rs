//! The status of a request that is rejected, 4xx, or that failed: 503 or 500.

use http::StatusCode;

use super::body::BodyError;
use super::failure::Failure;
use super::rejection::Rejection;
use crate::provider::Provider;
use crate::provider::signature::SignatureError;
use crate::transaction::CommitError;

impl Rejection {
    /// Whether the sender is told to come again, as the key may be there then. Where the keys of tenants are
    /// fetched, he always is: the two answers would tell which tenants exist, and a key that was not fetched must
    /// not cost a delivery.
    pub(super) fn is_for_later(&self, provider: &Provider) -> bool {
        match self {
            Self::Signature(SignatureError::KeyNotFetched(_)) => true,
            Self::Signature(_) => provider.fetches_keys_of_tenants(),
            Self::Method(_) | Self::Identity(_) | Self::Body(_) => false,
        }
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::Method(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::Signature(_) => StatusCode::UNAUTHORIZED,
            Self::Identity(_) | Self::Body(BodyError::Broken(_)) => StatusCode::BAD_REQUEST,
            Self::Body(BodyError::TooLarge { .. } | BodyError::LimitOfAnotherLayer) => {
                StatusCode::PAYLOAD_TOO_LARGE
            }
            Self::Body(BodyError::TooSlow(_)) => StatusCode::REQUEST_TIMEOUT,
        }
    }

    /// The status, or another one that the provider wants for it.
    pub(super) fn status_for(&self, provider: &Provider) -> StatusCode {
        let answers = &provider.answers;
        if self.is_for_later(provider) {
            return answers.failure.unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
        }
        let wanted = match self {
            Self::Method(_) => None,
            Self::Signature(_) => answers.rejection.or(answers.failure),
            // The same delivery may be processed the next time: by another limit, on another line.
            Self::Identity(_) | Self::Body(_) => answers.failure,
        };
        wanted.unwrap_or(self.status())
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
            | Self::NotCommitted
            | Self::CannotRollBack
            | Self::Commit(CommitError::Aborted | CommitError::TransactionReplaced) => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
        }
    }
}
