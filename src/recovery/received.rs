//! How much this process has to do for senders, who come before recovery.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

static RECEIVED: AtomicU64 = AtomicU64::new(0);

/// Counts a request that this process handles, whichever layer it came to.
pub(crate) fn count_one() {
    RECEIVED.fetch_add(1, Ordering::Relaxed);
}

/// How many there have been so far.
pub(super) fn count() -> u64 {
    RECEIVED.load(Ordering::Relaxed)
}

/// Whether requests have come lately.
pub(super) struct Traffic {
    count: u64,
    noticed: Option<Instant>,
}

impl Traffic {
    pub(super) fn new() -> Self {
        Self {
            count: count(),
            noticed: None,
        }
    }

    /// Whether none has come for a while, as far as that was asked.
    pub(super) fn is_quiet(&mut self) -> bool {
        const A_WHILE: Duration = Duration::from_secs(1);
        let count = count();
        if count != self.count {
            self.count = count;
            self.noticed = Some(Instant::now());
        }
        self.noticed
            .is_none_or(|noticed| noticed.elapsed() > A_WHILE)
    }
}
