//! `HandlerError`: the error of a handler. It contains a reason for the operator, and says what happens next: a retry
//! by the schedule, a retry at a given time, or no retry.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};

use super::error_chain::{BoxError, ErrorChain};

/// The error of a handler: a status for the sender, and a reason for the operator.
///
/// Any error converts into it with `?`. The layer rolls back and logs the reason. If failures are kept or recorded, the
/// reason is stored as well. The sender gets the status with an empty body. The status is 500 unless
/// [`status`](Self::status) sets another one.
///
/// ```
/// use axum::http::StatusCode;
/// use idempotent_webhook::{DedupeTx, HandlerError};
///
/// async fn paid(mut tx: DedupeTx) -> Result<StatusCode, HandlerError> {
///     let updated = sqlx::query("update orders set status = 'paid' where id = 1")
///         .execute(&mut *tx)
///         .await?
///         .rows_affected();
///     if updated == 0 {
///         return Err(HandlerError::new("there is no such order yet").status(StatusCode::CONFLICT));
///     }
///     Ok(StatusCode::OK)
/// }
/// ```
///
/// An error type of the application can use it in its `IntoResponse`, alone or together with a status and a body:
///
/// ```
/// use axum::http::StatusCode;
/// use axum::response::{IntoResponse, Response};
/// use idempotent_webhook::HandlerError;
///
/// struct AppError(sqlx::Error);
///
/// impl IntoResponse for AppError {
///     fn into_response(self) -> Response {
///         let status = StatusCode::SERVICE_UNAVAILABLE;
///         (status, HandlerError::from(self.0), "try later").into_response()
///     }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct HandlerError {
    status: StatusCode,
    reason: FailureReason,
}

/// What happens next to a kept delivery whose attempt has failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Next {
    /// A retry, by the schedule.
    #[default]
    Scheduled,
    After(Duration),
    Dead,
    Discard,
}

/// The reason of a failure, in the extensions of the handler's response.
#[derive(Clone, Debug)]
pub(crate) struct FailureReason {
    pub(crate) text: String,
    /// What happens next to the delivery.
    pub(crate) next: Next,
    /// Whether the cause is a lost connection or a conflict with other transactions, and not the handler.
    pub(crate) is_of_the_moment: bool,
}

impl FailureReason {
    pub(crate) fn new(text: impl fmt::Display) -> Self {
        Self {
            text: text.to_string(),
            next: Next::Scheduled,
            is_of_the_moment: false,
        }
    }
}

impl HandlerError {
    /// An error with a reason for the log and the record. The sender does not see it.
    pub fn new(reason: impl fmt::Display) -> Self {
        Self {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            reason: FailureReason::new(reason),
        }
    }

    /// The status of the response. Default: 500.
    ///
    /// With a 2xx, the delivery counts as processed.
    #[must_use]
    pub fn status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// [`Recovery`](crate::Recovery) runs the delivery again after this time, in place of the schedule's
    /// delay. The schedule still limits the number of attempts.
    #[must_use]
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.reason.next = Next::After(delay);
        self
    }

    /// The delivery is dead at once, if it is kept: it runs again only if an operator retries it.
    #[must_use]
    pub fn dead(mut self) -> Self {
        self.reason.next = Next::Dead;
        self
    }

    /// The delivery is not kept. If it was kept before, it is deleted: [`Recovery`](crate::Recovery) does not run it
    /// again.
    #[must_use]
    pub fn discard(mut self) -> Self {
        self.reason.next = Next::Discard;
        self
    }

    /// The reason, to add to a response that has its own status and body.
    #[cfg(feature = "axum")]
    pub(crate) fn into_reason(self) -> FailureReason {
        self.reason
    }

    /// The response: the status with an empty body. Its extensions contain the reason.
    pub fn into_response<B: From<Bytes>>(self) -> Response<B> {
        let mut response = Response::new(B::from(Bytes::new()));
        *response.status_mut() = self.status;
        response.extensions_mut().insert(self.reason);
        response
    }
}

/// The reason includes the causes of the error.
impl<E: Into<BoxError>> From<E> for HandlerError {
    fn from(error: E) -> Self {
        let error = error.into();
        let chain = ErrorChain(&*error);
        if chain.waited_for_the_pool() {
            return Self::new(format_args!(
                "{chain}; a handler already holds the connection of its `DedupeTx`: read and write through it, or make \
                 the pool larger"
            ));
        }
        let mut new = Self::new(&chain);
        new.reason.is_of_the_moment = chain.is_of_the_moment();
        new
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason.text)
    }
}
