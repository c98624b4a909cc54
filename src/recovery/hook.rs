//! Calls functions of the application that are told of something: `on_change` for `problems.rs`, `on_dead` for `dead.rs`.

use std::time::Duration;

use tokio::time::Instant;

use crate::panic::{self, catch_drop};
use crate::stop_signal::Stop;

/// For how long a call is waited for, and for how long calls are made after it was asked to stop.
const LIMIT: Duration = Duration::from_secs(10);

/// For how long no other process tells the same. Longer than a call is waited for.
pub(super) const TELLING: Duration = Duration::from_secs(60);

/// The time to tell what is to be told. It goes on when it is asked to stop, so that what is there is told, but not for
/// ever.
pub(super) struct Telling<'a> {
    began: Instant,
    stop: &'a Stop,
}

impl<'a> Telling<'a> {
    pub(super) fn begin(stop: &'a Stop) -> Self {
        Self {
            began: Instant::now(),
            stop,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.stop.is_asked() && self.began.elapsed() > LIMIT
    }
}

/// Calls a function on a thread where it may block. Returns whether it was called, or was left to another process, since the
/// runtime shuts down.
///
/// One that panics is not called again, nor is one that takes too long: it would be called for ever.
pub(super) async fn call(name: &'static str, hook: impl FnOnce() + Send + 'static) -> bool {
    let called = tokio::task::spawn_blocking(hook);
    let Ok(called) = tokio::time::timeout(LIMIT, called).await else {
        tracing::warn!(
            hook = name,
            "a hook takes longer than {LIMIT:?}: what it tells may come after what is told next"
        );
        return true;
    };
    match called.map_err(tokio::task::JoinError::try_into_panic) {
        Ok(()) => true,
        Err(Ok(payload)) => {
            let message = panic::message(&*payload);
            tracing::error!(hook = name, message, "a hook for webhooks panicked");
            if let Err(payload) = catch_drop(payload) {
                // Its destructor may panic, too.
                std::mem::forget(payload);
            }
            true
        }
        Err(Err(_cancelled)) => false,
    }
}
