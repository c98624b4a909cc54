//! A delivery that may be processed, and where it comes from.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::answer::Answer;
use super::telemetry;
use crate::delivery::Delivery;
use crate::digest::Sha256Digest;
use crate::recovery::{AttemptBy, KeptRequest, RecoveryAttempt, Take};
use crate::settings::Settings;

/// An authentic delivery that has to be processed.
pub(super) struct Admitted {
    pub(super) settings: Arc<Settings>,
    pub(super) delivery: Delivery,
    pub(super) fingerprint: Option<Sha256Digest>,
    /// What it is about, if deliveries of one object run one at a time.
    pub(super) object: Option<Arc<str>>,
    pub(super) origin: Origin,
    /// The type of a kept delivery, if this process has no handler for it.
    pub(super) ignored: Option<String>,
    /// When the layer was called.
    pub(super) began: Instant,
    /// The bound on the wait for other attempts.
    pub(super) deadline: Instant,
}

/// Why there is an attempt.
pub(super) enum Origin {
    /// The provider has sent a request. This part of it is kept if the attempt fails.
    Received(Option<KeptRequest>),
    /// The same, but the request is kept already.
    KeptFirst(Take),
    /// It is kept and answered, and handled in the background, in a slot.
    Accepted {
        take: Take,
        _slot: OwnedSemaphorePermit,
    },
    /// It is kept, and recovery runs it again.
    Recovered(RecoveryAttempt),
    /// It is kept, and is rehearsed: rolled back, and not recorded.
    Rehearsed,
}

impl Origin {
    /// Which attempt at a kept delivery it is.
    pub(super) fn take(&self) -> Option<&Take> {
        match self {
            Self::Received(_) | Self::Rehearsed => None,
            Self::KeptFirst(take) | Self::Accepted { take, .. } => Some(take),
            Self::Recovered(attempt) => Some(attempt.take()),
        }
    }

    /// Whose attempt it is: that of whoever sent the request, even if the answer has left before.
    pub(super) fn by(&self) -> AttemptBy {
        match self {
            Self::Received(_) | Self::KeptFirst(_) | Self::Accepted { .. } => AttemptBy::Provider,
            Self::Recovered(_) | Self::Rehearsed => AttemptBy::Recovery,
        }
    }

    /// Whether a sender waits for the answer.
    pub(super) fn is_request(&self) -> bool {
        match self {
            Self::Received(_) | Self::KeptFirst(_) => true,
            Self::Accepted { .. } | Self::Recovered(_) | Self::Rehearsed => false,
        }
    }

    /// Whether it is rolled back whatever the handler answers, and is neither recorded nor measured.
    pub(super) fn is_rehearsal(&self) -> bool {
        matches!(self, Self::Rehearsed)
    }
}

impl Admitted {
    /// Logs and counts the answer.
    pub(super) fn log<R, E>(&self, answer: &Answer<R, E>) {
        if self.origin.is_request() {
            telemetry::answer(&self.settings, answer);
        } else {
            telemetry::recovery(&self.settings, answer);
        }
    }
}
