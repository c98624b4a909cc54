//! The answer to a request, and its response: which text, which headers.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ALLOW, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, RETRY_AFTER,
};
use http::{Method, Response, StatusCode};

use super::failure::Failure;
use super::handler_error::FailureReason;
use super::rejection::Rejection;
use crate::outcome::{OUTCOME_HEADER, Outcome};
use crate::provider::{Handshake, Provider};
use crate::transaction::{DuplicateOf, NotClaimed};

/// For a sender who is to come again.
pub(super) const LATER: &str = "temporarily unavailable";

/// The answer to a request, before it is a response.
pub(super) enum Answer<B, E> {
    /// The handler's response, committed.
    Processed(Response<B>),
    Duplicate(DuplicateOf),
    Handshake(Handshake),
    /// An earlier attempt is still running.
    InFlight,
    /// Another delivery of its object is still running.
    ObjectInFlight,
    Rejected(Rejection),
    /// The layer ignores its event type.
    Ignored(Ignored, String),
    /// The handler's response, which does not commit.
    RolledBack(Response<B>),
    Failed(Failure),
    /// The error of the inner service.
    InnerError(E),
    /// A failure whose delivery is kept.
    Kept(Box<Self>),
    /// The same, which the provider does not hear of.
    Acknowledged,
    /// The delivery is kept before its first attempt.
    Accepted,
}

/// What becomes of a delivery whose event type the layer ignores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ignored {
    /// It is a request, of which nothing is kept.
    Request,
    /// It was kept before, and waits for a process that has a handler.
    Waits,
    /// It was kept before, and has ended.
    Ended,
}

/// What is wrong with a handler that answered success. In the extensions of its response, for
/// `assert_idempotent`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Suspicion {
    /// The handler has not taken the transaction.
    UnusedTransaction,
    /// It has dropped a savepoint with writes.
    DroppedSavepoint,
}

impl fmt::Display for Suspicion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnusedTransaction => {
                "its handler has not taken DedupeTx, or LateClaim on a route with `late_claim`: writes on \
                 other connections are not part of the transaction and may happen twice; write through \
                 it, or set `allow_unused_transaction` on the layer"
            }
            Self::DroppedSavepoint => {
                "its handler has dropped a savepoint, whose writes are rolled back: end it with \
                 `commit()` or `rollback()`"
            }
        })
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
            NotClaimed::ObjectInFlight => Self::ObjectInFlight,
            NotClaimed::Superseded => Self::Failed(Failure::Superseded),
            NotClaimed::Failed(error) => Self::Failed(Failure::Claim(error)),
        }
    }
}

impl<B, E> From<Rejection> for Answer<B, E> {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection)
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
    pub(super) fn outcome(&self) -> Outcome {
        match self {
            Self::Processed(_) => Outcome::Processed,
            Self::Duplicate(_) => Outcome::Duplicate,
            Self::Handshake(_) => Outcome::Handshake,
            Self::InFlight | Self::ObjectInFlight => Outcome::InFlight,
            Self::Rejected(_) => Outcome::Rejected,
            Self::Ignored(..) => Outcome::Ignored,
            Self::RolledBack(_) | Self::Failed(_) | Self::InnerError(_) => Outcome::Failed,
            Self::Kept(_) | Self::Acknowledged => Outcome::Kept,
            Self::Accepted => Outcome::Accepted,
        }
    }
}

impl<B: From<Bytes>, E> Answer<B, E> {
    pub(super) fn into_response(
        self,
        provider: &Provider,
        retry_after: Duration,
    ) -> Result<Response<B>, E> {
        let outcome = self.outcome();
        // For `assert_idempotent`; it does not leave the process.
        let reason = match &self {
            Self::Rejected(rejection) => Some(rejection.reason(provider)),
            Self::Failed(failure) => Some(failure.to_string()),
            _ => None,
        };
        let is_handshake = matches!(self, Self::Handshake(_));
        let mut response = match self {
            Self::Processed(response) => succeed(response, provider),
            Self::RolledBack(response) => fail(response, provider, retry_after),
            Self::Duplicate(_) | Self::Acknowledged | Self::Accepted | Self::Ignored(..) => {
                acknowledge(provider)
            }
            Self::Kept(answer) => answer.into_response(provider, retry_after)?,
            Self::Handshake(handshake) => handshake.response(),
            Self::InFlight | Self::ObjectInFlight => {
                unavailable("in flight, retry later", provider, retry_after)
            }
            Self::Rejected(rejection) => {
                let status = rejection.status_for(provider);
                let mut response = plain(status, rejection.text(provider));
                if says_when(status) {
                    retry_later(&mut response, retry_after);
                }
                if let Rejection::Method(allowed) = rejection {
                    response.headers_mut().insert(ALLOW, list(&allowed));
                }
                response
            }
            Self::Failed(failure) => match failure.status() {
                StatusCode::SERVICE_UNAVAILABLE => {
                    unavailable(failure.text(), provider, retry_after)
                }
                status => fail(plain(status, failure.text().into()), provider, retry_after),
            },
            Self::InnerError(error) => return Err(error),
        };
        if let Some(text) = provider.answers.success_text
            && response.status().is_success()
            && !is_handshake
        {
            response = with_text(response, text);
        }
        if provider.answers.are_empty && !is_handshake {
            response = emptied(response);
        }
        response
            .headers_mut()
            .insert(OUTCOME_HEADER, HeaderValue::from_static(outcome.as_str()));
        response.extensions_mut().insert(outcome);
        if let Some(reason) = reason {
            response.extensions_mut().insert(FailureReason::new(reason));
        }
        Ok(response)
    }
}

/// An empty success.
fn acknowledge<B: From<Bytes>>(provider: &Provider) -> Response<B> {
    let status = provider.answers.acknowledgement;
    let status = status.or(provider.answers.success);
    let mut response = Response::new(B::from(Bytes::new()));
    *response.status_mut() = status.unwrap_or(StatusCode::OK);
    response
}

/// A success with the status that the provider insists on.
fn succeed<B: From<Bytes>>(mut response: Response<B>, provider: &Provider) -> Response<B> {
    let Some(status) = provider.answers.success else {
        return response;
    };
    if !response.status().is_success() {
        return response;
    }
    *response.status_mut() = status;
    match status {
        StatusCode::NO_CONTENT => emptied(response),
        _ => response,
    }
}

/// A failure with the status after which the provider delivers again. The kit's rollback of a success
/// stays one. A handler's 410 is about what it has looked for; some senders delete the endpoint for it.
fn fail<B>(mut response: Response<B>, provider: &Provider, retry_after: Duration) -> Response<B> {
    let gone = (response.status() == StatusCode::GONE).then_some(StatusCode::INTERNAL_SERVER_ERROR);
    if let Some(status) = provider.answers.failure.or(gone)
        && !response.status().is_success()
    {
        *response.status_mut() = status;
        if says_when(status) && !response.headers().contains_key(RETRY_AFTER) {
            retry_later(&mut response, retry_after);
        }
    }
    response
}

/// A short text.
fn plain<B: From<Bytes>>(status: StatusCode, text: String) -> Response<B> {
    let mut response = Response::new(B::from(text.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    response
}

/// Whether `Retry-After` belongs to the status.
fn says_when(status: StatusCode) -> bool {
    [
        StatusCode::SERVICE_UNAVAILABLE,
        StatusCode::TOO_MANY_REQUESTS,
    ]
    .contains(&status)
}

/// A 503 with `Retry-After`, unless the provider hears of it by a status without.
fn unavailable<B: From<Bytes>>(
    text: &str,
    provider: &Provider,
    retry_after: Duration,
) -> Response<B> {
    let mut response = plain(StatusCode::SERVICE_UNAVAILABLE, text.into());
    if provider.answers.failure.is_none_or(says_when) {
        retry_later(&mut response, retry_after);
    }
    fail(response, provider, retry_after)
}

/// Adds `Retry-After`.
fn retry_later<B>(response: &mut Response<B>, retry_after: Duration) {
    let seconds = retry_after.as_secs().max(1);
    response.headers_mut().insert(RETRY_AFTER, seconds.into());
}

/// The response with another body.
fn with_text<B: From<Bytes>>(response: Response<B>, text: &'static str) -> Response<B> {
    let mut response = emptied(response).map(|_| B::from(Bytes::from_static(text.as_bytes())));
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

/// The response without its body.
fn emptied<B: From<Bytes>>(response: Response<B>) -> Response<B> {
    let mut response = response.map(|_| B::from(Bytes::new()));
    for header in [CONTENT_TYPE, CONTENT_LENGTH, CONTENT_ENCODING] {
        response.headers_mut().remove(header);
    }
    response
}

fn list(methods: &[Method]) -> HeaderValue {
    let methods: Vec<_> = methods.iter().map(Method::as_str).collect();
    // A method is a token, which is always a valid header value.
    HeaderValue::try_from(methods.join(", ")).unwrap_or(HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::provider::{Secret, SecretError, presets};

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
                let Ok(response) = answer.into_response(&provider, Duration::from_secs(5));
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
            let Ok(response) = answer.into_response(provider, Duration::from_secs(1));
            assert_eq!(response.status().as_u16(), expected, "{handlers}");
        }
        Ok(())
    }

    #[test]
    fn a_provider_that_wants_a_text_gets_it_with_every_success() -> Result<(), SecretError> {
        const TEXT: &str = "Hello API Event Received";
        let provider = presets::dropbox_sign(Secret::new("secret")?);
        let answer = |answer: Answer<Bytes, Infallible>| {
            let Ok(response) = answer.into_response(&provider, Duration::from_secs(1));
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
