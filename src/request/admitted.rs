//! A delivery that may be processed, and where it comes from.

use std::sync::Arc;

use tokio::time::Instant;

use super::log;
use super::response::Answer;
use crate::delivery::Delivery;
use crate::recovery::{KeptRequest, Replay};
use crate::settings::Settings;
use crate::transaction::Fingerprint;

/// An authentic delivery that has to be processed.
pub(super) struct Admitted {
    pub(super) settings: Arc<Settings>,
    pub(super) delivery: Delivery,
    pub(super) fingerprint: Option<Fingerprint>,
    pub(super) origin: Origin,
    /// Until when to wait for other attempts.
    pub(super) deadline: Instant,
}

/// Why there is an attempt.
pub(super) enum Origin {
    /// The provider has sent a request, of which this is kept if it fails.
    Received(Option<KeptRequest>),
    /// It is kept already, and this is its first attempt.
    Accepted,
    /// It is kept, and recovery runs it again.
    Recovered(Replay),
}

impl Admitted {
    pub(super) fn is_accepted_first(&self) -> bool {
        let keep = self.settings.keep.as_ref();
        keep.is_some_and(|keep| keep.accept_first)
            && matches!(self.origin, Origin::Received(Some(_)))
    }

    pub(super) fn log<R, E>(&self, answer: &Answer<R, E>) {
        match self.origin {
            Origin::Received(_) => log::answer(&self.settings, answer),
            Origin::Accepted | Origin::Recovered(_) => log::recovery(&self.settings, answer),
        }
    }
}

impl Origin {
    /// How many attempts of the schedule there have been.
    pub(super) fn retries(&self) -> u32 {
        match self {
            Self::Received(_) | Self::Accepted => 0,
            Self::Recovered(replay) => replay.retries(),
        }
    }
}
