//! A delivery that may be processed, and the origin of the attempt at it. A kept delivery is one that is stored in
//! Postgres. A `Take` identifies the attempt that has taken a kept delivery to run it.

use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use http::request::Parts;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tracing::Span;

use super::ending::Ending;
use super::telemetry;
use crate::layer::settings::Settings;
use crate::layer::verification::{Authentic, identified};
use crate::metrics::outcome::Outcome;
use crate::provider::delivery::Delivery;
use crate::provider::digest::Sha256Digest;
use crate::provider::event_types::Wanted;
use crate::recovery::{AttemptBy, KeptRequest, RecoveryAttempt, RehearsalAttempt, Take};

/// An authentic delivery to process.
pub(super) struct Admitted {
    pub(super) settings: Arc<Settings>,
    pub(super) delivery: Delivery,
    pub(super) fingerprint: Option<Sha256Digest>,
    /// The object that the delivery is about, such as a subscription, if deliveries of one object run one at a time.
    pub(super) object: Option<Arc<str>>,
    pub(super) origin: Origin,
    /// The event type of a kept delivery, if this process has no handler for it.
    pub(super) ignored: Option<String>,
    /// When the layer was called.
    pub(super) began: Instant,
    /// When the wait for other attempts ends.
    pub(super) deadline: Instant,
}

/// Where an attempt comes from.
pub(super) enum Origin {
    /// The provider has sent a request. This part of the request is kept if the attempt fails.
    Received(Option<KeptRequest>),
    /// The provider has sent a request, and it is already kept.
    KeptFirst(Take),
    /// The request is kept and already answered. It is handled in the background, and holds one of recovery's slots.
    Accepted {
        take: Take,
        _slot: OwnedSemaphorePermit,
    },
    /// The delivery is kept, and recovery runs it again.
    Recovered(RecoveryAttempt),
    /// The delivery is kept, and the attempt is a rehearsal: it is rolled back and not recorded.
    Rehearsed(RehearsalAttempt),
}

impl Origin {
    /// Identifies this attempt among the attempts at a kept delivery. `None` for a delivery that is not kept yet, and
    /// for a rehearsal.
    pub(super) fn take(&self) -> Option<&Take> {
        match self {
            Self::Received(_) | Self::Rehearsed(_) => None,
            Self::KeptFirst(take) | Self::Accepted { take, .. } => Some(take),
            Self::Recovered(attempt) => Some(attempt.take()),
        }
    }

    /// Who has made the attempt: the provider or recovery. An attempt at a provider's request is the provider's, even
    /// if the request was already answered.
    pub(super) fn by(&self) -> AttemptBy {
        match self {
            Self::Received(_) | Self::KeptFirst(_) | Self::Accepted { .. } => AttemptBy::Provider,
            Self::Recovered(_) | Self::Rehearsed(_) => AttemptBy::Recovery,
        }
    }

    /// Whether a sender waits for the answer.
    pub(super) fn is_request(&self) -> bool {
        match self {
            Self::Received(_) | Self::KeptFirst(_) => true,
            Self::Accepted { .. } | Self::Recovered(_) | Self::Rehearsed(_) => false,
        }
    }

    /// Whether the attempt is always rolled back, and is neither recorded nor measured.
    pub(super) fn is_rehearsal(&self) -> bool {
        matches!(self, Self::Rehearsed(_))
    }
}

impl Admitted {
    /// Admits an authentic delivery. Returns it with the request for its handler.
    pub(super) fn new<B: From<Bytes>>(
        settings: &Arc<Settings>,
        mut head: Parts,
        authentic: Authentic,
        origin: Origin,
        began: Instant,
    ) -> (Self, Request<B>) {
        let Authentic {
            delivery,
            body,
            wanted,
        } = authentic;
        identified(&Span::current(), &delivery);
        let is_received = matches!(origin, Origin::Received(_));
        if is_received {
            telemetry::received();
        }
        let ignored = match wanted {
            Some(Wanted::Yes(matched)) => {
                if is_received && let Some(name) = settings.verification.handled_name(matched) {
                    settings.counts.handled_type(name);
                }
                head.extensions.insert(matched);
                None
            }
            Some(Wanted::Ignored(_)) => delivery.event_type().map(str::to_owned),
            None => None,
        };
        let admitted = Self {
            settings: settings.clone(),
            // A rehearsal also runs if the body was already processed.
            fingerprint: match origin.is_rehearsal() {
                true => None,
                false => settings.fingerprint(&delivery, &body),
            },
            object: settings.object(&head, &body),
            delivery,
            origin,
            ignored,
            began,
            deadline: began + settings.in_flight_timeout,
        };
        (admitted, Request::from_parts(head, B::from(body)))
    }

    /// Logs how an attempt ended, and counts its outcome.
    pub(super) fn log<R, E>(&self, ending: &Ending<R, E>, outcome: Outcome) {
        match self.origin.is_request() {
            true => telemetry::request(&self.settings, outcome),
            false => telemetry::attempt(&self.settings, outcome),
        }
        telemetry::ended(ending);
    }
}
