//! Failures that the layer itself answers for an authentic request, with a 500 or a 503. Examples are a panic, a
//! timeout, a refused commit or an unreachable Postgres.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

use crate::recovery::NOT_REHEARSABLE;
use crate::tasks_and_errors::panic;
use crate::transaction::{CommitError, DatabaseError};

/// Why an attempt failed. Either nothing was committed, or nobody knows whether the commit took effect. If nobody
/// knows, a retry finds out.
#[derive(Debug)]
pub(super) enum Failure {
    /// The request has already passed through another `IdempotentWebhook`.
    Nested,
    /// There was no connection, no transaction or no claim.
    Claim(DatabaseError),
    /// The same as `Claim`, but after the handler was called.
    LateClaim(DatabaseError),
    /// The delivery could not be kept before its first attempt.
    Acceptance(DatabaseError),
    /// The delivery could not be kept before its first attempt, because its body is too large.
    TooLargeToKeep {
        limit: usize,
    },
    /// The delivery was kept, and this process has no handler for its event type.
    NoHandler(String),
    /// No more deliveries of the endpoint may be kept.
    QuotaExhausted,
    /// The delivery was kept. Before this attempt could claim it, it was discarded or taken by another attempt.
    Superseded,
    HandlerTimedOut {
        timeout: Duration,
        /// Whether all connections of the pool were in use, one of them by the handler.
        pool_in_use: bool,
    },
    HandlerPanicked(String),
    /// The handler has moved its `DedupeTx` or `LateClaim` to a place that outlives it.
    Outlived,
    Commit(CommitError),
    /// The handler reports that it has committed the delivery with another driver, but there is no claim.
    NotCommitted,
    /// The attempt is a rehearsal, and the layer does not allow rehearsals.
    NotRehearsable,
    /// The attempt is a rehearsal for an endpoint other than the layer's.
    OtherEndpoint(Arc<str>),
    /// The handler reports that it has committed a rehearsal with another driver.
    RehearsalCommitted,
    /// The handler has ended the transaction of a rehearsal.
    RehearsalLeft,
    /// The runtime is shutting down.
    Cancelled,
}

impl Failure {
    pub(super) fn panicked(payload: &(dyn Any + Send)) -> Self {
        Self::HandlerPanicked(panic::message(payload).to_owned())
    }

    /// 503 if a retry may succeed without a change of the application, 500 otherwise.
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Claim(_)
            | Self::LateClaim(_)
            | Self::Acceptance(_)
            | Self::TooLargeToKeep { .. }
            | Self::NoHandler(_)
            | Self::QuotaExhausted
            | Self::Superseded
            | Self::HandlerTimedOut { .. }
            | Self::Cancelled
            // The answer to the commit is lost. A 2xx would be wrong, because Postgres may have rolled back.
            | Self::Commit(CommitError::Database(_)) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Nested
            | Self::HandlerPanicked(_)
            | Self::Outlived
            | Self::NotCommitted
            | Self::NotRehearsable
            | Self::OtherEndpoint(_)
            | Self::RehearsalCommitted
            | Self::RehearsalLeft
            | Self::Commit(CommitError::Aborted | CommitError::TransactionReplaced) => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
        }
    }

    /// Whether the failure counts as an attempt of the retry schedule: the handler was called, or this process has no
    /// handler for the event type.
    pub(super) fn is_an_attempt(&self) -> bool {
        !matches!(
            self,
            Self::Nested
                | Self::Claim(_)
                | Self::Acceptance(_)
                | Self::TooLargeToKeep { .. }
                | Self::QuotaExhausted
                | Self::Superseded
                | Self::NotRehearsable
                | Self::OtherEndpoint(_)
        )
    }

    /// Whether a delivery that is not kept yet is kept after this failure, although its handler was not called. If
    /// Postgres cannot be used, the layer does not try to keep it.
    pub(super) fn keeps_what_did_not_begin(&self) -> bool {
        match self {
            Self::Claim(error) => error.leaves_postgres_usable(),
            Self::TooLargeToKeep { .. } => true,
            _ => false,
        }
    }
}

/// The text for the operator.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nested => f.write_str(
                "the route has two IdempotentWebhook layers, whose transactions cannot commit \
                 together: remove one of them",
            ),
            Self::Claim(error) => write!(f, "could not claim the delivery: {error}"),
            Self::LateClaim(error) => write!(
                f,
                "could not claim the delivery after its handler was called: {error}"
            ),
            Self::Acceptance(error) => write!(f, "could not accept the delivery: {error}"),
            Self::TooLargeToKeep { limit } => write!(
                f,
                "the delivery was not accepted: its body is larger than the {limit} bytes that may be kept \
                 (`Keep::body_limit`)"
            ),
            Self::NoHandler(event_type) => write!(
                f,
                "this process has no handler for the type `{event_type}` of a kept delivery: another version of the \
                 application may have one"
            ),
            Self::QuotaExhausted => {
                f.write_str("the delivery was not accepted: the quota of kept deliveries is exhausted")
            }
            Self::Superseded => f.write_str(
                "the delivery was discarded, forgotten or taken by another attempt before this one \
                 began",
            ),
            Self::HandlerTimedOut {
                timeout,
                pool_in_use,
            } => {
                write!(
                    f,
                    "the handler took longer than {timeout:?} (`handler_timeout`)"
                )?;
                f.write_str(match pool_in_use {
                    true => {
                        ", and all connections of the pool are in use: a handler that takes another one in addition to \
                         its `DedupeTx` waits for other handlers, or for itself"
                    }
                    false => "",
                })
            }
            Self::HandlerPanicked(message) => write!(f, "the handler panicked: {message}"),
            Self::Outlived => f.write_str(
                "DedupeTx, or LateClaim, outlived the handler: it was moved into a task or into the body of \
                 the response, so its writes are not committed",
            ),
            Self::Commit(CommitError::Aborted) => f.write_str(
                "the handler answered success although a statement had failed in its \
                 transaction: return the error, or run the statement in a savepoint",
            ),
            Self::Commit(CommitError::TransactionReplaced) => f.write_str(
                "the transaction of the claim had ended before the handler answered: SQL of the handler ended it, a \
                 savepoint could not be made or was cancelled, or a savepoint was left open",
            ),
            Self::Commit(CommitError::Database(error)) => {
                write!(f, "the commit was not confirmed: {error}")
            }
            Self::NotCommitted => f.write_str(
                "the handler has called `LateClaim::committed`, but the delivery is not claimed: its \
                 transaction was rolled back, or did not call `idempotent_webhook.claim`",
            ),
            Self::NotRehearsable => f.write_str(NOT_REHEARSABLE),
            Self::OtherEndpoint(endpoint) => write!(
                f,
                "its path leads to the layer of another endpoint, `{endpoint}`"
            ),
            Self::RehearsalCommitted => f.write_str(
                "the handler commits with another driver (`LateClaim::committed`), which cannot be rolled back",
            ),
            Self::RehearsalLeft => f.write_str(
                "the handler has ended the transaction of its rehearsal: its later writes may be committed",
            ),
            Self::Cancelled => f.write_str("the runtime shut down"),
        }
    }
}
