//! How an attempt ended: the input of the decision (`decision.rs`), the recorded failure, and the response.

use std::fmt;

use bytes::Bytes;
use http::{Response, StatusCode};

use super::decision::How;
use super::failure::Failure;
use super::test_kit::RolledBack;
use crate::layer::verification::{
    LATER, Verification, acknowledge, fail, plain, succeed, unavailable,
};
use crate::recovery::FailedAttempt;
use crate::tasks_and_errors::handler_error::{FailureReason, Next};
use crate::transaction::{CommitError, DuplicateOf, NotClaimed};

/// How an attempt ended, with the response or failure that it led to.
pub(super) enum Ending<B, E> {
    /// The handler's response. Its transaction is committed.
    Processed(Response<B>),
    Duplicate(DuplicateOf),
    /// An earlier attempt is still running.
    InFlight,
    /// Another delivery of the same object is still running.
    ObjectInFlight {
        /// Whether the layer found this out only after it had called the handler.
        handler_was_called: bool,
    },
    /// The handler's response. Its transaction is rolled back.
    RolledBack(Response<B>),
    Failed(Failure),
    /// The error of the inner service.
    InnerError(E),
}

/// A likely mistake in a handler that answered success. It is an extension of the response, so that `assert_idempotent`
/// can read it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Suspicion(&'static str);

impl Suspicion {
    pub(super) const UNUSED_TRANSACTION: Self = Self(
        "its handler has not taken DedupeTx, or LateClaim on a route with `late_claim`: writes on other connections \
         are not part of the transaction and may happen twice; write through the transaction, or set \
         `allow_unused_transaction` on the layer",
    );

    pub(super) const DROPPED_SAVEPOINT: Self = Self(
        "its handler has dropped a savepoint, whose writes are rolled back: end it with \
         `commit()` or `rollback()`",
    );
}

impl fmt::Display for Suspicion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl<B, E> From<Failure> for Ending<B, E> {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl<B, E> From<NotClaimed> for Ending<B, E> {
    fn from(not_claimed: NotClaimed) -> Self {
        match not_claimed {
            NotClaimed::Duplicate(of) => Self::Duplicate(of),
            NotClaimed::InFlight => Self::InFlight,
            NotClaimed::ObjectInFlight => Self::ObjectInFlight {
                handler_was_called: false,
            },
            NotClaimed::Superseded => Self::Failed(Failure::Superseded),
            NotClaimed::Failed(error) => Self::Failed(Failure::Claim(error)),
        }
    }
}

impl<B, E> Ending<B, E> {
    /// The ending if the delivery could not be claimed after the handler was called. This counts as an attempt, because
    /// the handler has already done the work that precedes its claim, and will do this work again at the next attempt.
    pub(super) fn after_the_handler(not_claimed: NotClaimed) -> Self {
        match not_claimed {
            NotClaimed::Failed(error) => Self::Failed(Failure::LateClaim(error)),
            NotClaimed::ObjectInFlight => Self::ObjectInFlight {
                handler_was_called: true,
            },
            not_claimed => not_claimed.into(),
        }
    }

    pub(super) fn how(&self) -> How {
        match self {
            Self::Processed(_) => How::Processed,
            Self::Duplicate(DuplicateOf::Id) => How::Duplicate,
            Self::Duplicate(DuplicateOf::Body { .. }) => How::Replayed,
            Self::InFlight | Self::ObjectInFlight { .. } => How::InFlight,
            Self::RolledBack(_) | Self::Failed(_) | Self::InnerError(_) => How::Failed,
        }
    }

    /// The failure to record, if there is one. Without a failure, a delivery that is not kept yet is not kept now.
    pub(super) fn failure(&self) -> Option<FailedAttempt> {
        let scheduled =
            |status, reason: &dyn fmt::Display| FailedAttempt::new(status, reason, Next::Scheduled);
        match self {
            Self::Processed(_) | Self::Duplicate(_) | Self::InFlight => None,
            Self::RolledBack(response) if response.extensions().get::<RolledBack>().is_some() => {
                None
            }
            Self::RolledBack(response) => {
                let status = response.status();
                Some(match response.extensions().get::<FailureReason>() {
                    Some(reason) => FailedAttempt::new(status, &reason.text, reason.next),
                    None => scheduled(status, &format_args!("the handler answered {status}")),
                })
            }
            Self::ObjectInFlight { handler_was_called } => {
                let reason = "other deliveries of its object were being processed (`serialize_by`)";
                let failed = scheduled(StatusCode::SERVICE_UNAVAILABLE, &reason);
                Some(match handler_was_called {
                    true => failed,
                    false => failed.not_begun(),
                })
            }
            Self::Failed(failure) => {
                let failed = scheduled(failure.status(), failure);
                match failure {
                    Failure::NoHandler(_) => Some(failed.without_breaker()),
                    failure if failure.is_an_attempt() => Some(failed),
                    failure => failure
                        .keeps_what_did_not_begin()
                        .then(|| failed.not_begun()),
                }
            }
            Self::InnerError(_) => Some(scheduled(
                StatusCode::INTERNAL_SERVER_ERROR,
                &"the inner service failed",
            )),
        }
    }

    /// Whether the cause of the failure is temporary and says nothing about the handler, such as a deadlock.
    pub(super) fn is_of_the_moment(&self) -> bool {
        match self {
            Self::RolledBack(response) => {
                let reason: Option<&FailureReason> = response.extensions().get();
                reason.is_some_and(|reason| reason.is_of_the_moment)
            }
            Self::Failed(
                Failure::LateClaim(error) | Failure::Commit(CommitError::Database(error)),
            ) => error.is_of_the_moment(),
            _ => false,
        }
    }
}

impl<B: From<Bytes>, E> Ending<B, E> {
    /// The response of the attempt itself, with a status that the provider accepts.
    pub(super) fn into_response(self, verification: &Verification) -> Result<Response<B>, E> {
        let Verification {
            provider,
            retry_after,
            ..
        } = verification;
        Ok(match self {
            Self::InnerError(error) => return Err(error),
            Self::Processed(response) => succeed(response, provider),
            Self::RolledBack(response) => fail(response, provider, *retry_after),
            Self::Duplicate(_) => acknowledge(provider),
            Self::InFlight | Self::ObjectInFlight { .. } => {
                unavailable("in flight, retry later", provider, *retry_after)
            }
            Self::Failed(failure) => {
                let mut response = match failure.status() {
                    StatusCode::SERVICE_UNAVAILABLE => unavailable(LATER, provider, *retry_after),
                    status => {
                        let response = plain(status, "internal error".into());
                        fail(response, provider, *retry_after)
                    }
                };
                // `assert_idempotent` reads the reason. It is an extension of the response, so it does not leave the
                // process.
                response
                    .extensions_mut()
                    .insert(FailureReason::new(failure));
                response
            }
        })
    }
}
