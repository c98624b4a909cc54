//! Which answer a request gets, as for a duplicate, and its text. `verification/response.rs` makes the response, with a status
//! that the provider takes and with the headers; `failure.rs` has the status of a failure of the layer.

use std::fmt;

use bytes::Bytes;
use http::{Response, StatusCode};

use super::failure::Failure;
use crate::handler_error::FailureReason;
use crate::outcome::Outcome;
use crate::transaction::{DuplicateOf, NotClaimed};
use crate::verification::{
    LATER, Unhandled, Verification, acknowledge, fail, finish, plain, succeed, unavailable,
};

/// The answer to a request, before it is a response.
pub(super) enum Answer<B, E> {
    /// The handler's response, committed.
    Processed(Response<B>),
    Duplicate(DuplicateOf),
    /// It does not reach the handler.
    Unhandled(Unhandled),
    /// An earlier attempt is still running.
    InFlight,
    /// Another delivery of its object is still running.
    ObjectInFlight {
        /// Whether the handler was called before that was known.
        handler_was_called: bool,
    },
    /// The handler's response, which does not commit.
    RolledBack(Response<B>),
    Failed(Failure),
    /// The error of the inner service.
    InnerError(E),
    /// A failure whose delivery is kept.
    Kept(Box<Self>),
    /// The same, which the provider does not hear of.
    Acknowledged,
    /// A failure of which the provider does not hear, since an operator has discarded the delivery meanwhile.
    Discarded,
    /// The delivery is kept before its first attempt.
    Accepted,
}

/// What is wrong with a handler that answered success. In the extensions of its response, for
/// `assert_idempotent`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Suspicion(&'static str);

impl Suspicion {
    pub(super) const UNUSED_TRANSACTION: Self = Self(
        "its handler has not taken DedupeTx, or LateClaim on a route with `late_claim`: writes on \
         other connections are not part of the transaction and may happen twice; write through \
         it, or set `allow_unused_transaction` on the layer",
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

impl<B, E> From<Failure> for Answer<B, E> {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl<B, E> From<NotClaimed> for Answer<B, E> {
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

impl<B, E> From<Unhandled> for Answer<B, E> {
    fn from(unhandled: Unhandled) -> Self {
        Self::Unhandled(unhandled)
    }
}

impl Failure {
    /// For the sender.
    fn text(&self) -> &'static str {
        if self.status() == StatusCode::SERVICE_UNAVAILABLE {
            LATER
        } else {
            "internal error"
        }
    }
}

impl<B, E> Answer<B, E> {
    /// The handler was called, and the delivery could not be claimed after that. This is an attempt: it has done what
    /// needs no claim, and does it again the next time.
    pub(super) fn after_the_handler(not_claimed: NotClaimed) -> Self {
        match not_claimed {
            NotClaimed::Failed(error) => Self::Failed(Failure::LateClaim(error)),
            NotClaimed::ObjectInFlight => Self::ObjectInFlight {
                handler_was_called: true,
            },
            not_claimed => not_claimed.into(),
        }
    }

    pub(super) fn outcome(&self) -> Outcome {
        match self {
            Self::Processed(_) => Outcome::Processed,
            Self::Duplicate(_) => Outcome::Duplicate,
            Self::Unhandled(unhandled) => unhandled.outcome(),
            Self::InFlight | Self::ObjectInFlight { .. } => Outcome::InFlight,
            Self::RolledBack(_) | Self::Failed(_) | Self::InnerError(_) => Outcome::Failed,
            Self::Kept(_) | Self::Acknowledged => Outcome::Kept,
            Self::Discarded => Outcome::Discarded,
            Self::Accepted => Outcome::Accepted,
        }
    }
}

impl<B: From<Bytes>, E> Answer<B, E> {
    pub(super) fn into_response(self, verification: &Verification) -> Result<Response<B>, E> {
        let Verification {
            provider,
            retry_after,
            ..
        } = verification;
        let outcome = self.outcome();
        let response = match self {
            Self::Unhandled(unhandled) => return Ok(unhandled.into_response(verification)),
            Self::InnerError(error) => return Err(error),
            Self::Processed(response) => succeed(response, provider),
            Self::RolledBack(response) => fail(response, provider, *retry_after),
            Self::Duplicate(_) | Self::Acknowledged | Self::Discarded | Self::Accepted => {
                acknowledge(provider)
            }
            Self::Kept(answer) => answer.into_response(verification)?,
            Self::InFlight | Self::ObjectInFlight { .. } => {
                unavailable("in flight, retry later", provider, *retry_after)
            }
            Self::Failed(failure) => {
                let mut response = match failure.status() {
                    StatusCode::SERVICE_UNAVAILABLE => {
                        unavailable(failure.text(), provider, *retry_after)
                    }
                    status => {
                        let response = plain(status, failure.text().into());
                        fail(response, provider, *retry_after)
                    }
                };
                // For `assert_idempotent`; it does not leave the process.
                response
                    .extensions_mut()
                    .insert(FailureReason::new(failure));
                response
            }
        };
        Ok(finish(response, outcome, provider))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::header::RETRY_AFTER;

    use super::*;
    use crate::presets;
    use crate::provider::{Provider, Secret, SecretError};

    fn verification(provider: &Provider) -> Verification {
        Verification::new("test".into(), provider.clone())
    }

    /// Wise would use up its retries within minutes.
    #[test]
    fn a_failure_has_retry_after_only_where_its_status_has_it() -> Result<(), SecretError> {
        let given = presets::github(Secret::new("secret")?);
        for (status, expected) in [
            (None, Some("5")),
            (Some(StatusCode::SERVICE_UNAVAILABLE), Some("5")),
            (Some(StatusCode::TOO_MANY_REQUESTS), Some("5")),
            (Some(StatusCode::INTERNAL_SERVER_ERROR), None),
            (Some(StatusCode::CONFLICT), None),
        ] {
            let provider = match status {
                Some(status) => given.clone().failure_status(status),
                None => given.clone(),
            };
            for answer in [Answer::InFlight, Failure::QuotaExhausted.into()] {
                let answer: Answer<Bytes, Infallible> = answer;
                let Ok(response) = answer.into_response(&verification(&provider));
                let given = response.headers().get(RETRY_AFTER);
                assert_eq!(given.and_then(|value| value.to_str().ok()), expected);
            }
        }
        Ok(())
    }

    #[test]
    fn a_handlers_410_deletes_no_endpoint() -> Result<(), SecretError> {
        let given = presets::standard_webhooks(Secret::new("c2VjcmV0")?);
        let later = given
            .clone()
            .failure_status(StatusCode::SERVICE_UNAVAILABLE);
        for (provider, handlers, expected) in
            [(&given, 410, 500), (&given, 404, 404), (&later, 410, 503)]
        {
            let mut response = Response::new(Bytes::new());
            *response.status_mut() = StatusCode::from_u16(handlers).unwrap_or_default();
            let answer: Answer<Bytes, Infallible> = Answer::RolledBack(response);
            let Ok(response) = answer.into_response(&verification(provider));
            assert_eq!(response.status().as_u16(), expected, "{handlers}");
        }
        Ok(())
    }

    #[test]
    fn a_provider_that_wants_a_text_gets_it_with_every_success() -> Result<(), SecretError> {
        const TEXT: &str = "Hello API Event Received";
        let provider = presets::dropbox_sign(Secret::new("secret")?);
        let answer = |answer: Answer<Bytes, Infallible>| {
            let Ok(response) = answer.into_response(&verification(&provider));
            (response.status().as_u16(), response.into_body())
        };
        let mut created = Response::new(Bytes::from("made by the handler"));
        *created.status_mut() = StatusCode::CREATED;
        for success in [
            Answer::Processed(created),
            Answer::Duplicate(DuplicateOf::Id),
            Answer::Accepted,
        ] {
            assert_eq!(answer(success), (200, TEXT.into()));
        }
        let mut failed = Response::new(Bytes::from("failed"));
        *failed.status_mut() = StatusCode::BAD_GATEWAY;
        assert_eq!(answer(Answer::RolledBack(failed)), (502, "failed".into()));
        Ok(())
    }
}
