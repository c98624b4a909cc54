//! Whether a loop in the background still makes progress.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The time by which a loop will have finished its current work, as the loop itself has announced. It is not enough
/// that the loop's task is alive: the task may wait for something that never happens, or its thread may be blocked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress(Arc<Mutex<Option<Instant>>>);

impl Progress {
    /// Records that the loop has made progress, and will report progress again within this time.
    pub(crate) fn within(&self, time: Duration) {
        // There is no limit if the time is too late for an `Instant`.
        self.set(Instant::now().checked_add(time));
    }

    /// Extends the time from outside of the loop, because something that the loop waits for makes progress. The loop
    /// never has less time than before.
    pub(crate) fn at_least_within(&self, time: Duration) {
        let later = Instant::now().checked_add(time);
        let mut until = self.lock();
        *until = until.and_then(|until| later.map(|later| later.max(until)));
    }

    /// Removes the limit, because the loop waits for another loop, or has ended.
    pub(crate) fn unlimited(&self) {
        self.set(None);
    }

    pub(crate) fn is_overdue(&self) -> bool {
        self.lock().is_some_and(|until| until < Instant::now())
    }

    fn set(&self, until: Option<Instant>) {
        *self.lock() = until;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        // Nothing panics while it holds the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(60 * 60);

    #[tokio::test(start_paused = true)]
    async fn what_goes_on_beside_a_loop_takes_no_time_from_it() {
        let progress = Progress::default();
        progress.at_least_within(Duration::ZERO);
        tokio::time::advance(HOUR).await;
        assert!(!progress.is_overdue(), "the loop has ended");

        progress.within(HOUR);
        progress.at_least_within(HOUR / 2);
        tokio::time::advance(HOUR * 3 / 4).await;
        assert!(!progress.is_overdue());
        progress.at_least_within(HOUR / 2);
        tokio::time::advance(HOUR / 3).await;
        assert!(!progress.is_overdue());
        tokio::time::advance(HOUR / 3).await;
        assert!(progress.is_overdue());
    }

    #[tokio::test(start_paused = true)]
    async fn a_rest_without_an_end_is_never_over() {
        let progress = Progress::default();
        progress.within(Duration::MAX);
        tokio::time::advance(HOUR).await;
        assert!(!progress.is_overdue());
    }
}
