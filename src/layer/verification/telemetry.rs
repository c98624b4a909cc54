//! The span of a request, and the log lines of a request that `VerifiedWebhook` has passed on to the handler.

use http::Response;
use http::request::Parts;
use tracing::field::Empty;
use tracing::{Span, debug, error_span, warn};

use super::rejection::Rejected;
use super::settings::Verification;
use crate::layer::route::route_of;
use crate::metrics::outcome::Outcome;
use crate::provider::delivery::Delivery;
use crate::tasks_and_errors::handler_error::FailureReason;

/// The span in which the handler runs, within the caller's span. It is the span of a request or, if the request was
/// already answered, of the attempt at its delivery.
///
/// Its level is ERROR. With a lower level, a filter could drop the span and keep its events.
pub(crate) fn span(caller: &Span, verification: &Verification) -> Span {
    error_span!(
        parent: caller,
        "webhook",
        endpoint = &*verification.endpoint,
        provider = verification.provider.name(),
        tenant = Empty,
        route = Empty,
        delivery_id = Empty,
        event_type = Empty,
        attempt = Empty,
        traceparent = Empty,
        outcome = Empty,
    )
}

/// Adds the delivery to the span, now that it is authentic.
pub(crate) fn identified(span: &Span, delivery: &Delivery) {
    span.record("tenant", delivery.tenant());
    span.record("delivery_id", delivery.id().as_str());
    span.record("event_type", delivery.event_type());
    if delivery.attempt() > 1 {
        span.record("attempt", delivery.attempt());
    }
}

/// Adds the tenant and the route of a rejected request to the span. They contain nothing that the sender has chosen.
pub(super) fn rejected(head: &Parts, rejected: &Rejected) {
    let span = Span::current();
    if let Some(tenant) = rejected.tenant.as_deref() {
        span.record("tenant", tenant);
    }
    if let Some(route) = route_of(head) {
        span.record("route", route);
    }
}

/// Counts the outcome of a request, and adds it to the span.
pub(super) fn count(verification: &Verification, outcome: Outcome) {
    if outcome.is_of_the_provider() {
        verification.metrics.outcome(outcome);
    }
    Span::current().record("outcome", outcome.as_str());
}

/// Logs and counts that the inner service has failed.
pub(super) fn inner_error(verification: &Verification) {
    count(verification, Outcome::Failed);
    warn!("webhook verified: the inner service failed");
}

/// Logs and counts the handler's answer to a delivery that was passed on.
pub(super) fn answered<B>(verification: &Verification, response: &Response<B>, outcome: Outcome) {
    count(verification, outcome);
    match outcome {
        Outcome::Verified => debug!("webhook verified, and handled"),
        _ => warn!(
            status = response.status().as_u16(),
            reason = response
                .extensions()
                .get()
                .map(|reason: &FailureReason| reason.text.as_str()),
            "webhook verified: the handler did not answer success"
        ),
    }
}
