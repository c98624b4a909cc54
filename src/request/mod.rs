//! The lifecycle of a request, from its head to the response.

mod accept;
mod admitted;
mod attempt;
mod authenticate;
mod body;
mod error_text;
#[cfg(feature = "axum")]
mod extract;
mod failure;
mod handler_error;
mod log;
mod outcome;
mod rejection;
mod response;
mod rollback_test;
mod service;
mod settle;

pub use handler_error::HandlerError;
pub use outcome::{OUTCOME_HEADER, Outcome};
pub use service::{IdempotentWebhookService, ResponseFuture};
#[cfg(feature = "testing")]
pub(crate) use {
    handler_error::FailureReason,
    response::Suspicion,
    rollback_test::{HandleFirst, RollBack, RolledBack, Skipped},
};
