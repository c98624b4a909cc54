//! Why a delivery was not processed: what the sender is told, and what the operator.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::time::Duration;

use http::StatusCode;

use crate::body::BodyError;
use crate::claim::CommitError;
use crate::database::DatabaseError;
use crate::panic;
use crate::signature::SignatureError;
use crate::source::IdentityError;

/// The sender's fault: nothing of the request has reached Postgres or the handler.
#[derive(Debug)]
pub(crate) enum Rejection {
    Signature(SignatureError),
    Identity(IdentityError),
    Body(BodyError),
}

impl From<SignatureError> for Rejection {
    fn from(error: SignatureError) -> Self {
        Self::Signature(error)
    }
}

impl From<BodyError> for Rejection {
    fn from(error: BodyError) -> Self {
        Self::Body(error)
    }
}

impl Rejection {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Signature(_) => StatusCode::UNAUTHORIZED,
            Self::Identity(_) | Self::Body(BodyError::Broken(_)) => StatusCode::BAD_REQUEST,
            Self::Body(BodyError::TooLarge) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Body(BodyError::TooSlow) => StatusCode::REQUEST_TIMEOUT,
        }
    }

    /// For the sender. Of a signature it does not say what is wrong.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Signature(_) => "signature missing or not valid".into(),
            Self::Identity(error) => error.to_string(),
            Self::Body(error) => error.to_string(),
        }
    }

    /// For the metrics: one of a few names.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Signature(error) => match error {
                SignatureError::MissingHeader(_) => "missing_header",
                SignatureError::MalformedHeader(_) => "malformed_header",
                SignatureError::NoMatch => "no_match",
                SignatureError::UnusableSecret => "unusable_secret",
                SignatureError::NoSecret => "no_secret",
                SignatureError::NoTimestamp => "no_timestamp",
                SignatureError::TooOld => "too_old",
                SignatureError::TooNew => "too_new",
            },
            Self::Identity(_) => "no_usable_id",
            Self::Body(BodyError::TooLarge) => "body_too_large",
            Self::Body(BodyError::TooSlow) => "body_too_slow",
            Self::Body(BodyError::Broken(_)) => "body_broken",
        }
    }

    /// For the operator.
    pub(crate) fn reason(&self) -> Chain<'_> {
        Chain(match self {
            Self::Signature(error) => error,
            Self::Identity(error) => error,
            Self::Body(error) => error,
        })
    }
}

/// Not the sender's fault. Nothing is committed, or nobody can tell; a retry will.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The tenant's secrets could not be looked up.
    NoSecrets(Box<dyn Error + Send + Sync>),
    /// Another layer of this kind is around this one.
    Nested,
    /// No connection, no transaction or no claim could be had.
    Unavailable(DatabaseError),
    HandlerTimedOut(Duration),
    HandlerPanicked(String),
    /// Somebody still holds the `DedupeTx`.
    Outlived,
    Commit(CommitError),
    /// The runtime is shutting down.
    Cancelled,
}

impl Failure {
    pub(crate) fn panicked(payload: &(dyn Any + Send)) -> Self {
        Self::HandlerPanicked(panic::message(payload).to_owned())
    }

    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::NoSecrets(_)
            | Self::Unavailable(_)
            | Self::HandlerTimedOut(_)
            | Self::Cancelled
            | Self::Commit(CommitError::Database(_)) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Nested
            | Self::HandlerPanicked(_)
            | Self::Outlived
            | Self::Commit(CommitError::Aborted | CommitError::NotOurs) => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
        }
    }

    /// For the sender.
    pub(crate) fn text(&self) -> &'static str {
        if self.status() == StatusCode::SERVICE_UNAVAILABLE {
            "temporarily unavailable"
        } else {
            "internal error"
        }
    }
}

/// For the operator.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSecrets(error) => {
                write!(
                    f,
                    "could not look up the tenant's secrets: {}",
                    Chain(&**error)
                )
            }
            Self::Nested => f.write_str(
                "the route has IdempotentWebhook around it twice, in two transactions that cannot \
                 commit together: take one of the two away",
            ),
            Self::Unavailable(error) if error.is_not_migrated() => write!(
                f,
                "could not claim the delivery: {error}; has `idempotent_webhook::migrate` been run?"
            ),
            Self::Unavailable(error) => write!(f, "could not claim the delivery: {error}"),
            Self::HandlerTimedOut(time) => write!(f, "the handler took longer than {time:?}"),
            Self::HandlerPanicked(message) => write!(f, "the handler panicked: {message}"),
            Self::Outlived => f.write_str(
                "DedupeTx outlived the handler: it was moved into a task or into the body of \
                 the response, so what was done through it is not committed",
            ),
            Self::Commit(CommitError::Aborted) => f.write_str(
                "the handler answered success although a statement had failed in its \
                 transaction: pass the error on, or run the statement in a savepoint",
            ),
            Self::Commit(CommitError::NotOurs) => f.write_str(
                "the transaction of the claim was gone when the handler answered: it was ended \
                 by SQL, or by a savepoint that could not be made or was cancelled, or a \
                 savepoint was left open",
            ),
            Self::Commit(CommitError::Database(error)) => {
                write!(f, "the commit was not confirmed: {error}")
            }
            Self::Cancelled => f.write_str("the runtime shut down"),
        }
    }
}

/// An error with its causes, on one line.
pub(crate) struct Chain<'a>(pub(crate) &'a (dyn Error + 'a));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
