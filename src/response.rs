//! What became of a request, and the response that says so.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};

use crate::claim::Repeat;
use crate::delivery::Handshake;
use crate::error::{Failure, Rejection};

/// Tells in every response what became of the delivery.
const OUTCOME: HeaderName = HeaderName::from_static("x-webhook-outcome");

/// What became of a request.
pub(crate) enum Outcome<B> {
    /// Committed; the handler's response.
    Processed(Response<B>),
    /// Committed before.
    Duplicate(Repeat),
    /// No delivery, but a question whether the endpoint is there.
    Handshake(Handshake),
    /// An earlier attempt is still at it.
    InFlight,
    Rejected(Rejection),
    /// The handler's response, which says that it failed; rolled back.
    RolledBack(Response<B>),
    Failed(Failure),
}

impl<B: From<Bytes>> Outcome<B> {
    pub(crate) fn into_response(self, retry_after: Duration) -> Response<B> {
        match self {
            Self::Processed(response) => tell(response, "processed"),
            Self::RolledBack(response) => tell(response, "failed"),
            Self::Duplicate(_) => tell(Response::new(B::from(Bytes::new())), "duplicate"),
            Self::Handshake(handshake) => tell(
                plain(StatusCode::OK, handshake.challenge.into(), retry_after),
                "handshake",
            ),
            Self::InFlight => tell(
                plain(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "in flight, retry later".into(),
                    retry_after,
                ),
                "in-flight",
            ),
            Self::Rejected(rejection) => tell(
                plain(rejection.status(), rejection.text().into(), retry_after),
                "rejected",
            ),
            Self::Failed(failure) => tell(
                plain(failure.status(), failure.text().into(), retry_after),
                "failed",
            ),
        }
    }
}

fn tell<B>(mut response: Response<B>, outcome: &'static str) -> Response<B> {
    response
        .headers_mut()
        .insert(OUTCOME, HeaderValue::from_static(outcome));
    response
}

/// A short text; with `Retry-After` where the service is unavailable.
fn plain<B: From<Bytes>>(status: StatusCode, text: Bytes, retry_after: Duration) -> Response<B> {
    let mut response = Response::new(B::from(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    if status == StatusCode::SERVICE_UNAVAILABLE {
        headers.insert(RETRY_AFTER, retry_after.as_secs().max(1).into());
    }
    response
}
