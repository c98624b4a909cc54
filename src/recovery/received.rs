//! How much this process has to do for senders, who come before recovery.

use std::sync::atomic::{AtomicU64, Ordering};

static RECEIVED: AtomicU64 = AtomicU64::new(0);

/// Counts a request that this process handles, whichever layer it came to.
pub(crate) fn count_one() {
    RECEIVED.fetch_add(1, Ordering::Relaxed);
}

/// How many there have been so far.
pub(super) fn count() -> u64 {
    RECEIVED.load(Ordering::Relaxed)
}
