//! The lifecycle of a request, from its head to the response: `service.rs` starts it, `process.rs` goes from step to
//! step, `attempt.rs` runs the handler, `decision.rs` decides what follows, and `answer.rs` makes the answer to the
//! sender.

mod admitted;
mod answer;
mod attempt;
mod canary;
mod decision;
mod ending;
mod error_text;
#[cfg(feature = "axum")]
mod extract;
mod failure;
mod guards;
mod keep_first;
mod process;
mod record_result;
mod rehearse;
mod service;
mod telemetry;
mod test_kit;

pub use service::IdempotentWebhookService;
#[cfg(feature = "testing")]
pub(crate) use {
    ending::Suspicion,
    test_kit::{HandleFirst, RollBack, RolledBack, Skipped},
};
