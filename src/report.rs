//! What the operator is told of a request.

use crate::claim::Repeat;
use crate::delivery::Delivery;
use crate::error::{Failure, Rejection};
use crate::response::Outcome;

/// A request that has not become a delivery.
pub(crate) fn unidentified<B>(endpoint: &str, provider: &str, outcome: &Outcome<B>) {
    match outcome {
        Outcome::Rejected(rejection) => rejected(endpoint, provider, rejection),
        Outcome::Failed(failure) => tracing::error!(
            endpoint,
            provider,
            status = failure.status().as_u16(),
            reason = %failure,
            "webhook failed"
        ),
        Outcome::Handshake(handshake) => tracing::info!(
            endpoint,
            provider,
            event_type = handshake.event_type(),
            "webhook handshake answered"
        ),
        // Of these there is a delivery.
        Outcome::Processed(_)
        | Outcome::Duplicate(_)
        | Outcome::InFlight
        | Outcome::RolledBack(_) => {}
    }
}

fn rejected(endpoint: &str, provider: &str, rejection: &Rejection) {
    tracing::warn!(
        endpoint,
        provider,
        status = rejection.status().as_u16(),
        reason = %rejection.reason(),
        "webhook rejected"
    );
}

/// A delivery, which is authentic, so that its id may be named. Without an outcome, the
/// inner service has failed.
pub(crate) fn delivery<B>(delivery: &Delivery, outcome: Option<&Outcome<B>>) {
    let endpoint = delivery.endpoint();
    let provider = delivery.provider();
    let delivery_id = delivery.id().as_str();
    match outcome {
        Some(Outcome::Processed(_)) => {
            tracing::debug!(endpoint, provider, delivery_id, "webhook processed");
        }
        Some(Outcome::Duplicate(Repeat::Id)) => {
            tracing::debug!(endpoint, provider, delivery_id, "webhook duplicate");
        }
        Some(Outcome::Duplicate(Repeat::IdOnly { first, now })) => tracing::warn!(
            endpoint,
            provider,
            delivery_id,
            digest = hex::encode(now),
            first_digest = hex::encode(first),
            "webhook duplicate with another body than the first"
        ),
        Some(Outcome::Duplicate(Repeat::BodyOnly { first })) => tracing::warn!(
            endpoint,
            provider,
            delivery_id,
            first_delivery_id = first.as_deref(),
            "webhook suspicious: what it says was processed under another id; not processed again"
        ),
        Some(Outcome::InFlight) => {
            tracing::info!(endpoint, provider, delivery_id, "webhook still in flight");
        }
        Some(Outcome::RolledBack(response)) => tracing::warn!(
            endpoint,
            provider,
            delivery_id,
            status = response.status().as_u16(),
            "webhook rolled back: the handler did not answer success"
        ),
        Some(Outcome::Failed(failure)) => failed(delivery, failure),
        None => tracing::warn!(
            endpoint,
            provider,
            delivery_id,
            "webhook rolled back: the inner service failed"
        ),
        // Reported where they are found out, before there is a delivery.
        Some(Outcome::Rejected(_) | Outcome::Handshake(_)) => {}
    }
}

fn failed(delivery: &Delivery, failure: &Failure) {
    tracing::error!(
        endpoint = delivery.endpoint(),
        provider = delivery.provider(),
        delivery_id = delivery.id().as_str(),
        status = failure.status().as_u16(),
        reason = %failure,
        "webhook failed"
    );
}
