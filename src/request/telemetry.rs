//! The telemetry of a request: its log event, and what is counted of it.

use tracing::{Span, debug, error, info, warn};

use super::answer::{Answer, Suspicion};
use super::failure::Failure;
use super::test_kit::RolledBack;
use crate::handler_error::FailureReason;
use crate::settings::Settings;
use crate::transaction::{DatabaseError, DuplicateOf};

/// Logs that a delivery was received. If the process is killed in the handler, only this event tells of it.
pub(super) fn received() {
    debug!("webhook received");
}

/// Logs and counts the answer to a request.
pub(super) fn answer<B, E>(settings: &Settings, answer: &Answer<B, E>) {
    let outcome = answer.outcome();
    settings.counts.request(outcome);
    Span::current().record("outcome", outcome.as_str());
    event(settings, answer);
}

/// Logs and counts the result of an attempt at a kept delivery, which is no request.
pub(super) fn recovery<B, E>(settings: &Settings, answer: &Answer<B, E>) {
    let outcome = answer.outcome();
    settings.counts.attempt(outcome);
    Span::current().record("outcome", outcome.as_str());
    event(settings, answer);
}

/// Logs the result of a request or of an attempt. It is counted elsewhere, but for its details.
pub(super) fn event<B, E>(settings: &Settings, answer: &Answer<B, E>) {
    match answer {
        Answer::Kept(answer) => event(settings, answer),
        // The failure is logged apart.
        Answer::Acknowledged | Answer::Discarded => {}
        Answer::Accepted => debug!("webhook accepted"),
        Answer::Processed(_) => debug!("webhook processed"),
        Answer::Duplicate(DuplicateOf::Id) => debug!("webhook duplicate"),
        Answer::Duplicate(DuplicateOf::Body { first }) => warn!(
            first_delivery_id = first.as_deref(),
            "webhook suspicious: an identical body was processed under another id; not processed \
             again"
        ),
        Answer::Unhandled(unhandled) => {
            let provider = &settings.verification.provider;
            settings.counts.unhandled(unhandled, provider);
            unhandled.log(&settings.verification);
        }
        Answer::InFlight => info!("webhook still in flight"),
        Answer::ObjectInFlight { .. } => info!("other webhooks of its object still in flight"),
        Answer::RolledBack(response) if response.extensions().get::<RolledBack>().is_some() => {
            debug!("webhook rolled back instead of committed, as a test has asked for");
        }
        Answer::RolledBack(response) => warn!(
            status = response.status().as_u16(),
            reason = response
                .extensions()
                .get()
                .map(|reason: &FailureReason| reason.text.as_str()),
            "webhook rolled back: the handler did not answer success"
        ),
        Answer::Failed(failure @ Failure::Superseded) => {
            info!(reason = failure.to_string(), "webhook attempt not begun");
        }
        Answer::Failed(failure) => error!(
            status = failure.status().as_u16(),
            reason = failure.to_string(),
            "webhook failed"
        ),
        Answer::InnerError(_) => warn!("webhook rolled back: the inner service failed"),
    }
}

/// Warns of a mistake of a handler that looks like success.
pub(super) fn suspicion(suspicion: Suspicion) {
    warn!("webhook processed, but {suspicion}");
}

/// Logs that a result could not be recorded.
pub(super) fn not_written(error: &DatabaseError) {
    warn!(%error, "could not record the result of a webhook");
}

/// Logs that a failed delivery cannot run again.
pub(super) fn request_not_kept(limit: usize) {
    warn!(
        limit,
        "webhook not kept, only recorded: its body is larger than `Keep::body_limit`"
    );
}
