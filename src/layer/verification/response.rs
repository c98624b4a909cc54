//! The layer's own responses, and the changes that a provider requires in every response.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};

use crate::metrics::outcome::Outcome;
use crate::provider::Provider;

/// The text for a sender that should deliver again.
pub(crate) const LATER: &str = "temporarily unavailable";

/// Adds the outcome to a response, and gives the response the body that the provider requires.
pub(crate) fn finish<B: From<Bytes>>(
    mut response: Response<B>,
    outcome: Outcome,
    provider: &Provider,
) -> Response<B> {
    if let Some(text) = provider.answers.success_text
        && response.status().is_success()
    {
        response = with_text(response, text);
    }
    if provider.answers.are_empty {
        response = emptied(response);
    }
    outcome.write_to(&mut response);
    response
}

/// An empty success.
pub(crate) fn acknowledge<B: From<Bytes>>(provider: &Provider) -> Response<B> {
    let status = provider.answers.acknowledgement;
    let status = status.or(provider.answers.success);
    let mut response = Response::new(B::from(Bytes::new()));
    *response.status_mut() = status.unwrap_or(StatusCode::OK);
    response
}

/// A success with the status that the provider requires.
pub(crate) fn succeed<B: From<Bytes>>(
    mut response: Response<B>,
    provider: &Provider,
) -> Response<B> {
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

/// A failure with a status after which the provider delivers again. A success that was rolled back for the test kit
/// stays a success. A handler's 410 is replaced. The handler means that something is gone, but some providers delete
/// the endpoint after a 410.
pub(crate) fn fail<B>(
    mut response: Response<B>,
    provider: &Provider,
    retry_after: Duration,
) -> Response<B> {
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

/// A response with a short text.
pub(crate) fn plain<B: From<Bytes>>(status: StatusCode, text: String) -> Response<B> {
    let mut response = Response::new(B::from(text.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    response
}

/// Whether a response with this status may have `Retry-After`.
pub(crate) fn says_when(status: StatusCode) -> bool {
    [
        StatusCode::SERVICE_UNAVAILABLE,
        StatusCode::TOO_MANY_REQUESTS,
    ]
    .contains(&status)
}

/// A 503 with `Retry-After`. If the provider requires another status, `Retry-After` is added only to a status that may
/// have it.
pub(crate) fn unavailable<B: From<Bytes>>(
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
pub(crate) fn retry_later<B>(response: &mut Response<B>, retry_after: Duration) {
    let seconds = retry_after.as_secs().max(1);
    response.headers_mut().insert(RETRY_AFTER, seconds.into());
}

/// The response with this text in place of its body.
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
