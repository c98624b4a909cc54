//! What the operator is told of a request: a span, an event, and the metrics.

use tracing::field::Empty;
use tracing::{Span, debug, error, error_span, info, warn};

use crate::claim::Repeat;
use crate::delivery::Delivery;
use crate::meter::Meter;
use crate::response::Outcome;

/// The span of a request. All that is logged on its way is in it, that of the handler
/// included, and it is in the span of the caller.
///
/// It has the level of an error so that it is there wherever an event of any level is.
pub(crate) fn span(endpoint: &str, provider: &str) -> Span {
    error_span!(
        "webhook",
        endpoint,
        provider,
        tenant = Empty,
        delivery_id = Empty,
        event_type = Empty,
        outcome = Empty,
    )
}

/// Names the delivery in the span, now that it is authentic.
pub(crate) fn identified(delivery: &Delivery) {
    let span = Span::current();
    span.record("tenant", delivery.tenant());
    span.record("delivery_id", delivery.id().as_str());
    span.record("event_type", delivery.event_type());
}

/// What became of a request. Without an outcome, the inner service has failed.
pub(crate) fn outcome<B>(meter: &Meter, outcome: Option<&Outcome<B>>) {
    let name = outcome.map_or("failed", Outcome::name);
    meter.outcome(name);
    Span::current().record("outcome", name);
    match outcome {
        Some(Outcome::Processed(_)) => debug!("webhook processed"),
        Some(Outcome::Duplicate(Repeat::Id)) => debug!("webhook duplicate"),
        Some(Outcome::Duplicate(Repeat::IdOnly { first, now })) => warn!(
            digest = hex::encode(now),
            first_digest = hex::encode(first),
            "webhook duplicate with another body than the first"
        ),
        Some(Outcome::Duplicate(Repeat::BodyOnly { first })) => warn!(
            first_delivery_id = first.as_deref(),
            "webhook suspicious: what it says was processed under another id; not processed again"
        ),
        Some(Outcome::Handshake(_)) => info!("webhook handshake answered"),
        Some(Outcome::InFlight) => info!("webhook still in flight"),
        Some(Outcome::Rejected(rejection)) => {
            meter.rejection(rejection.kind());
            warn!(
                status = rejection.status().as_u16(),
                reason = %rejection.reason(),
                "webhook rejected"
            );
        }
        Some(Outcome::RolledBack(response)) => warn!(
            status = response.status().as_u16(),
            "webhook rolled back: the handler did not answer success"
        ),
        Some(Outcome::Failed(failure)) => error!(
            status = failure.status().as_u16(),
            reason = %failure,
            "webhook failed"
        ),
        None => warn!("webhook rolled back: the inner service failed"),
    }
}

/// The worst mistake that a handler can make is one that looks like success.
pub(crate) fn unused_transaction() {
    warn!(
        "webhook processed, but its handler has not taken DedupeTx: what it wrote by other \
         connections is not part of the transaction and may happen twice; take DedupeTx and write \
         through it, or say `allow_unused_transaction` on the layer"
    );
}
