//! What became of a request, and the response that says so.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};

use crate::claim::Repeat;
use crate::delivery::Handshake;
use crate::error::{Failure, Rejection};

/// Tells in every response what became of the delivery.
pub(crate) const OUTCOME: HeaderName = HeaderName::from_static("x-webhook-outcome");

/// In the extensions of a response whose handler has not taken the transaction, for the kit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnusedTransaction;

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

impl<B> Outcome<B> {
    /// What the header says, and the metrics.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Processed(_) => "processed",
            Self::Duplicate(_) => "duplicate",
            Self::Handshake(_) => "handshake",
            Self::InFlight => "in-flight",
            Self::Rejected(_) => "rejected",
            Self::RolledBack(_) | Self::Failed(_) => "failed",
        }
    }
}

impl<B: From<Bytes>> Outcome<B> {
    pub(crate) fn into_response(self, retry_after: Duration) -> Response<B> {
        let name = self.name();
        let mut response = match self {
            Self::Processed(response) | Self::RolledBack(response) => response,
            Self::Duplicate(_) => Response::new(B::from(Bytes::new())),
            Self::Handshake(handshake) => {
                plain(StatusCode::OK, handshake.challenge.into(), retry_after)
            }
            Self::InFlight => plain(
                StatusCode::SERVICE_UNAVAILABLE,
                "in flight, retry later".into(),
                retry_after,
            ),
            Self::Rejected(rejection) => {
                plain(rejection.status(), rejection.text().into(), retry_after)
            }
            Self::Failed(failure) => plain(failure.status(), failure.text().into(), retry_after),
        };
        response
            .headers_mut()
            .insert(OUTCOME, HeaderValue::from_static(name));
        response
    }
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
