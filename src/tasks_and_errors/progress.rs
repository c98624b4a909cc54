//! Whether a loop in the background still comes round.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Until when a loop has finished what it does now, as it has said itself. A task that lives proves nothing: it may wait for
/// what never comes, or a thread may be blocked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress(Arc<Mutex<Option<Instant>>>);

impl Progress {
    /// The loop comes round, and does so again within this time.
    pub(crate) fn within(&self, time: Duration) {
        self.set(Some(Instant::now() + time));
    }

    /// The loop waits for another one, or has ended.
    pub(crate) fn unlimited(&self) {
        self.set(None);
    }

    pub(crate) fn is_overdue(&self) -> bool {
        let until = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| until < Instant::now())
    }

    fn set(&self, until: Option<Instant>) {
        // Nothing panics while it holds the lock.
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }
}
