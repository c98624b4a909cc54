//! Deliveries of an endpoint that are *taken ahead*, before there are slots to run them. A take marks a batch of due
//! deliveries as taken by this process. It costs four round trips and a commit, no matter how many deliveries it takes.
//!
//! A delivery that is taken ahead starts soon, or is given back. So no operator, no other process and no breaker waits
//! for it for long.

use std::time::Duration;

use tokio::time::Instant;

use super::kept::MOST_TAKEN;
use super::served_endpoints::Served;
use super::taken::Taken;

/// The longest time that a delivery which was taken ahead waits for a slot. If more time than this has passed since the
/// last take, the handlers are slow, and nothing is taken ahead. A take costs little compared with slow handlers, and
/// deliveries that were taken ahead would wait longer than this.
const LONGEST_WAIT: Duration = Duration::from_millis(250);

/// The deliveries of an endpoint that are taken ahead.
#[derive(Default)]
pub(super) struct Ahead {
    waiting: Vec<Taken>,
    last_take: Option<LastTake>,
}

struct LastTake {
    /// When the take was over.
    at: Instant,
    /// How many attempts had ended before the take.
    ended: usize,
}

impl Ahead {
    /// How many deliveries to take for this many slots: one for each slot, and one for each attempt that has ended
    /// since the last take. So each take is larger than the one before. While attempts fail, nothing is taken ahead,
    /// because the breaker may open.
    pub(super) fn limit(&self, slots: usize, served: &Served) -> usize {
        let ended = match &self.last_take {
            Some(last) if last.at.elapsed() <= LONGEST_WAIT && !served.has_failures() => {
                served.ended().wrapping_sub(last.ended)
            }
            _ => 0,
        };
        (slots + ended).min(MOST_TAKEN)
    }

    /// Stores the deliveries for which a take found no slot. `ended` is how many attempts had ended before the take.
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

    /// Until when the deliveries that are taken ahead may wait. `None` if there are none.
    pub(super) fn until(&self) -> Option<Instant> {
        let last = self.last_take.as_ref().filter(|_| !self.is_empty())?;
        Some(last.at + LONGEST_WAIT)
    }

    /// Whether the deliveries that are taken ahead have waited too long, or attempts at their endpoint fail.
    pub(super) fn is_over(&self, served: &Served) -> bool {
        let is_late = self.until().is_some_and(|until| until <= Instant::now());
        is_late || !self.is_empty() && served.has_failures()
    }

    /// Removes all deliveries, to give them back.
    pub(super) fn take_all(&mut self) -> Vec<Taken> {
        std::mem::take(&mut self.waiting)
    }
}
