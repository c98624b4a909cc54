//! Deliveries of an endpoint that are taken before there are slots for them. A take costs four round trips and a commit,
//! for one delivery as for many.
//!
//! A delivery that is taken ahead begins soon, or is given back: no operator, no other process and no breaker waits for
//! it.

use std::time::Duration;

use tokio::time::Instant;

use super::kept::MOST_TAKEN;
use super::served_endpoints::Served;
use super::taken::Taken;

/// The longest wait for a slot. If the last take is longer ago, the handlers are slow, and nothing is taken ahead: a
/// take costs little beside them, and its deliveries would wait for longer.
const LONGEST_WAIT: Duration = Duration::from_millis(250);

/// The deliveries of an endpoint that are taken ahead.
#[derive(Default)]
pub(super) struct Ahead {
    waiting: Vec<Taken>,
    last_take: Option<LastTake>,
}

struct LastTake {
    /// When it was over.
    at: Instant,
    /// How many attempts had ended before it.
    ended: usize,
}

impl Ahead {
    /// How many to take for so many slots: in addition, as many as have ended since the last take, so each take is
    /// larger than the one before. None ahead while attempts fail, since the breaker may open.
    pub(super) fn limit(&self, slots: usize, served: &Served) -> usize {
        let ended = match &self.last_take {
            Some(last) if last.at.elapsed() <= LONGEST_WAIT && !served.has_failures() => {
                served.ended().wrapping_sub(last.ended)
            }
            _ => 0,
        };
        (slots + ended).min(MOST_TAKEN)
    }

    /// Keeps the deliveries of a take for which there was no slot. `ended` is how many attempts had ended before it.
    pub(super) fn put(&mut self, taken: impl Iterator<Item = Taken>, ended: usize) {
        let at = Instant::now();
        self.last_take = Some(LastTake { at, ended });
        self.waiting.extend(taken);
    }

    pub(super) fn next(&mut self) -> Option<Taken> {
        self.waiting.pop()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Until when they wait. `None` if there are none.
    pub(super) fn until(&self) -> Option<Instant> {
        let last = self.last_take.as_ref().filter(|_| !self.is_empty())?;
        Some(last.at + LONGEST_WAIT)
    }

    /// Whether they have waited for too long, or would be attempts at an endpoint that fails.
    pub(super) fn is_over(&self, served: &Served) -> bool {
        let is_late = self.until().is_some_and(|until| until <= Instant::now());
        is_late || !self.is_empty() && served.has_failures()
    }

    /// To give them back.
    pub(super) fn take_all(&mut self) -> Vec<Taken> {
        std::mem::take(&mut self.waiting)
    }
}
