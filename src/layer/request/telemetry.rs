//! The telemetry of a request: its log event and its counts.

use tracing::{Span, debug, error, info, warn};

use super::answer::Answer;
use super::ending::{Ending, Suspicion};
use super::failure::Failure;
use super::test_kit::RolledBack;
use crate::activity::counts::Counts;
use crate::layer::settings::Settings;
use crate::layer::verification::Unhandled;
use crate::metrics::outcome::Outcome;
use crate::provider::event_types::Ignored;
use crate::tasks_and_errors::handler_error::FailureReason;
use crate::transaction::{DatabaseError, DuplicateOf};

/// Logs that a delivery was received. If the process is killed while the handler runs, this event is the only trace of
/// the delivery.
pub(super) fn received() {
    debug!("webhook received");
}

/// Counts the outcome of a request.
pub(super) fn request(settings: &Settings, outcome: Outcome) {
    settings.counts.request(outcome);
    Span::current().record("outcome", outcome.as_str());
}

/// Counts the outcome of an attempt at a kept delivery, which is not a request.
pub(super) fn attempt(settings: &Settings, outcome: Outcome) {
    settings.counts.attempt(outcome);
    Span::current().record("outcome", outcome.as_str());
}

/// Logs and counts an answer for which nothing was recorded.
pub(super) fn answer<B, E>(settings: &Settings, answer: &Answer<B, E>) {
    match answer {
        Answer::Unhandled(unhandled) => {
            let verification = &settings.verification;
            request(settings, unhandled.outcome());
            count(settings, unhandled);
            unhandled.log(verification);
        }
        Answer::Acknowledged(outcome) => request(settings, *outcome),
        Answer::Attempted(outcome, ending) => {
            request(settings, *outcome);
            ended(ending);
        }
    }
}

/// Counts the details of a request that does not reach the handler.
fn count(settings: &Settings, unhandled: &Unhandled) {
    let Counts { metrics, activity } = &settings.counts;
    unhandled.count(metrics);
    let Some(activity) = activity else {
        return;
    };
    match unhandled {
        Unhandled::Ignored(Ignored::Named(name)) => activity.count_ignored_by_name(name),
        Unhandled::Ignored(Ignored::Other(event_type)) => {
            activity.count_ignored(event_type);
        }
        Unhandled::Rejected(rejected) => {
            let provider = &settings.verification.provider;
            let cause = rejected.rejection.kind();
            activity.count_rejection(cause, &rejected.stored_reason(provider));
        }
        Unhandled::Handshake(_)
        | Unhandled::Canary(_)
        | Unhandled::NoSecrets(_)
        | Unhandled::HandshakeFailed(_)
        | Unhandled::Panicked(_) => {}
    }
}

/// Logs and counts a delivery that is answered before its attempt.
pub(super) fn accepted(settings: &Settings) {
    request(settings, Outcome::Accepted);
    debug!("webhook accepted");
}

/// Logs how an attempt ended.
pub(super) fn ended<B, E>(ending: &Ending<B, E>) {
    match ending {
        Ending::Processed(_) => debug!("webhook processed"),
        Ending::Duplicate(DuplicateOf::Id) => debug!("webhook duplicate"),
        Ending::Duplicate(DuplicateOf::Body { first }) => warn!(
            first_delivery_id = first.as_deref(),
            "webhook suspicious: an identical body was processed under another id; not processed \
             again"
        ),
        Ending::InFlight => info!("webhook still in flight"),
        Ending::ObjectInFlight { .. } => info!("other webhooks of its object still in flight"),
        Ending::RolledBack(response) if response.extensions().get::<RolledBack>().is_some() => {
            debug!("webhook rolled back instead of committed, because a test asked for it");
        }
        Ending::RolledBack(response) => warn!(
            status = response.status().as_u16(),
            reason = response
                .extensions()
                .get()
                .map(|reason: &FailureReason| reason.text.as_str()),
            "webhook rolled back: the handler did not answer success"
        ),
        Ending::Failed(failure @ Failure::Superseded) => {
            info!(reason = failure.to_string(), "webhook attempt not begun");
        }
        Ending::Failed(failure) => error!(
            status = failure.status().as_u16(),
            reason = failure.to_string(),
            "webhook failed"
        ),
        Ending::InnerError(_) => warn!("webhook rolled back: the inner service failed"),
    }
}

/// Warns of a handler's mistake that looks like success.
pub(super) fn suspicion(suspicion: Suspicion) {
    warn!("webhook processed, but {suspicion}");
}

/// Logs that a result could not be recorded.
pub(super) fn not_written(error: &DatabaseError) {
    warn!(%error, "could not record the result of a webhook");
}

/// Logs that the failure of a delivery was recorded without its request, so that recovery cannot run the delivery
/// again.
pub(super) fn request_not_kept(limit: usize) {
    warn!(
        limit,
        "webhook not kept, only recorded: its body is larger than `Keep::body_limit`"
    );
}
