//! The telemetry of a request: its span, its log event, its metrics, and its count in the activity.

use tracing::field::Empty;
use tracing::{Span, debug, error, error_span, info, warn};

use super::failure::Failure;
use super::handler_error::FailureReason;
use super::rejection::Rejection;
use super::response::{Answer, Ignored, Suspicion};
use super::test_kit::RolledBack;
use crate::activity::Source;
use crate::delivery::Delivery;
use crate::settings::Settings;
use crate::transaction::{DatabaseError, DuplicateOf};

/// The span of a request, or of the attempt at a delivery that was accepted before, within the caller's
/// span. The handler runs in it.
///
/// At ERROR, so that no level filter drops the span but keeps its events.
pub(super) fn span(caller: &Span, settings: &Settings) -> Span {
    error_span!(
        parent: caller,
        "webhook",
        endpoint = &*settings.endpoint,
        provider = settings.provider.name(),
        tenant = Empty,
        delivery_id = Empty,
        event_type = Empty,
        attempt = Empty,
        outcome = Empty,
    )
}

/// Adds the delivery to the span, now that it is authentic.
pub(super) fn identified(span: &Span, delivery: &Delivery) {
    span.record("tenant", delivery.tenant());
    span.record("delivery_id", delivery.id().as_str());
    span.record("event_type", delivery.event_type());
    if delivery.attempt() > 1 {
        span.record("attempt", delivery.attempt());
    }
}

/// Logs that a delivery was received. If the process is killed in the handler, only this event tells of it.
pub(super) fn received() {
    debug!("webhook received");
}

/// Logs and counts the answer to a request.
pub(super) fn answer<B, E>(settings: &Settings, answer: &Answer<B, E>) {
    let outcome = answer.outcome().as_str();
    settings.metrics.outcome(outcome);
    settings.count(Source::Request, outcome);
    Span::current().record("outcome", outcome);
    event(settings, answer);
}

/// Logs and counts the result of an attempt at a kept delivery, which is no request.
pub(super) fn recovery<B, E>(settings: &Settings, answer: &Answer<B, E>) {
    let outcome = answer.outcome().as_str();
    settings.metrics.recovery(outcome);
    settings.count(Source::Recovery, outcome);
    Span::current().record("outcome", outcome);
    event(settings, answer);
}

/// Logs the result of a request or of an attempt. It is counted elsewhere, but for its details.
pub(super) fn event<B, E>(settings: &Settings, answer: &Answer<B, E>) {
    match answer {
        Answer::Kept(answer) => event(settings, answer),
        Answer::Acknowledged => {}
        Answer::Accepted => debug!("webhook accepted"),
        Answer::Processed(_) => debug!("webhook processed"),
        Answer::Duplicate(DuplicateOf::Id) => debug!("webhook duplicate"),
        Answer::Duplicate(DuplicateOf::IdWithOtherBody { first, now }) => warn!(
            digest = hex::encode(now),
            first_digest = hex::encode(first),
            "webhook duplicate with another body than the first"
        ),
        Answer::Duplicate(DuplicateOf::BodyWithOtherId { first }) => warn!(
            first_delivery_id = first.as_deref(),
            "webhook suspicious: an identical body was processed under another id; not processed \
             again"
        ),
        Answer::Ignored(Ignored::Request, event_type) => {
            settings.count_ignored(event_type);
            debug!(event_type, "webhook ignored: no handler is for its type");
        }
        Answer::Ignored(Ignored::Waits, event_type) => debug!(
            event_type,
            "no handler of this process is for the type of a kept webhook: it waits for another process"
        ),
        Answer::Ignored(Ignored::Ended, event_type) => info!(
            event_type,
            "a kept webhook has ended as ignored: no handler is for its type any more"
        ),
        Answer::Handshake(_) => info!("webhook handshake answered"),
        Answer::InFlight => info!("webhook still in flight"),
        Answer::ObjectInFlight => info!("other webhooks of its object still in flight"),
        Answer::Rejected(rejection) => {
            let cause = rejection.kind();
            settings.metrics.rejection(cause);
            settings.count_rejection(cause, || rejection.stored_reason(&settings.provider));
            let status = rejection.status_for(&settings.provider).as_u16();
            let reason = rejection.reason(&settings.provider);
            match rejection {
                // Browsers and scanners, not deliveries. But the first one may be a sign of a layer
                // in the wrong place.
                Rejection::Method(_) if settings.note_refused_method() => {
                    debug!(status, reason, "webhook rejected");
                }
                Rejection::Method(_) => warn!(
                    status,
                    reason,
                    "webhook rejected; if another handler should have had this request, put the \
                     layer on the webhook's route only (logged once)"
                ),
                _ => warn!(status, reason, "webhook rejected"),
            }
        }
        Answer::RolledBack(response) if response.extensions().get::<RolledBack>().is_some() => {
            debug!("webhook rolled back: a test has asked for that in place of the commit");
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
