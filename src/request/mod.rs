//! The lifecycle of a request, from its head to the response.

mod accept_and_run;
mod admitted;
mod attempt;
mod authenticate;
mod body;
mod error_text;
#[cfg(feature = "axum")]
mod extract;
mod failure;
mod handler_error;
mod record_result;
mod rejection;
mod response;
mod service;
mod status;
mod telemetry;
mod test_kit;

pub use handler_error::HandlerError;
pub use service::{IdempotentWebhookService, ResponseFuture};
#[cfg(feature = "testing")]
pub(crate) use {
    handler_error::FailureReason,
    response::Suspicion,
    test_kit::{HandleFirst, RollBack, RolledBack, Skipped},
};
