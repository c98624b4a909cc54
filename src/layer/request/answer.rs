//! The answer to a request, for example to a duplicate, as decided in `decision.rs`.
//!
//! The status of a failed attempt is chosen in `failure.rs`. If a request does not get as far as an attempt, its status
//! is chosen in `rejection.rs` and `unhandled.rs` of `layer/verification/`. `ending.rs` makes the response of an
//! attempt. `layer/verification/response.rs` gives each response its headers, and a status that the provider accepts.

use bytes::Bytes;
use http::Response;

use super::decision::{Answers, Decision, Written, decide};
use super::ending::Ending;
use super::failure::Failure;
use crate::layer::verification::{Unhandled, Verification, acknowledge, finish};
use crate::metrics::outcome::Outcome;

/// The answer to a request, before it becomes a response.
pub(super) enum Answer<B, E> {
    /// The request is not a delivery to attempt.
    Unhandled(Unhandled),
    /// An empty success.
    Acknowledged(Outcome),
    /// The response of the attempt.
    Attempted(Outcome, Ending<B, E>),
}

impl<B, E> Answer<B, E> {
    pub(super) fn new(decision: Decision, ending: Ending<B, E>) -> Self {
        match decision.answers {
            Answers::Attempt => Self::Attempted(decision.outcome, ending),
            Answers::Acknowledgement => Self::Acknowledged(decision.outcome),
        }
    }

    /// The answer if nothing was recorded about the attempt.
    pub(super) fn unrecorded(ending: Ending<B, E>) -> Self {
        Self::new(decide(ending.how(), Written::NotKept, false), ending)
    }
}

impl<B, E> From<Failure> for Answer<B, E> {
    fn from(failure: Failure) -> Self {
        Self::unrecorded(failure.into())
    }
}

impl<B, E> From<Unhandled> for Answer<B, E> {
    fn from(unhandled: Unhandled) -> Self {
        Self::Unhandled(unhandled)
    }
}

impl<B: From<Bytes>, E> Answer<B, E> {
    pub(super) fn into_response(self, verification: &Verification) -> Result<Response<B>, E> {
        let provider = &verification.provider;
        let (response, outcome) = match self {
            Self::Unhandled(unhandled) => return Ok(unhandled.into_response(verification)),
            Self::Acknowledged(outcome) => (acknowledge(provider), outcome),
            Self::Attempted(outcome, ending) => (ending.into_response(verification)?, outcome),
        };
        Ok(finish(response, outcome, provider))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::StatusCode;
    use http::header::RETRY_AFTER;

    use super::*;
    use crate::presets;
    use crate::provider::{Provider, Secret, SecretError};

    fn verification(provider: &Provider) -> Verification {
        Verification::new("test".into(), provider.clone())
    }

    /// `Retry-After` is sent only with the statuses that define it. For example, the provider Wise would use up its
    /// retries within minutes if every failure had this header.
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
            for ending in [Ending::InFlight, Ending::Failed(Failure::QuotaExhausted)] {
                let answer: Answer<Bytes, Infallible> = Answer::unrecorded(ending);
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
            let answer: Answer<Bytes, Infallible> =
                Answer::unrecorded(Ending::RolledBack(response));
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
            Answer::unrecorded(Ending::Processed(created)),
            Answer::Acknowledged(Outcome::Duplicate),
            Answer::Acknowledged(Outcome::Accepted),
        ] {
            assert_eq!(answer(success), (200, TEXT.into()));
        }
        let mut failed = Response::new(Bytes::from("failed"));
        *failed.status_mut() = StatusCode::BAD_GATEWAY;
        let failed = Answer::unrecorded(Ending::RolledBack(failed));
        assert_eq!(answer(failed), (502, "failed".into()));
        Ok(())
    }
}
