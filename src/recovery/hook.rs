//! Calls hooks, the application's functions for reports: `on_change` for `problems.rs`, `on_dead` for `dead.rs`.

use std::thread;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::tasks_and_errors::panic;
use crate::tasks_and_errors::stop_signal::Stop;

/// The longest wait for a call. It is also how long calls may go on after a request to stop.
const LIMIT: Duration = Duration::from_secs(10);

/// Longer than a call takes, together with the read before it and the write after it.
const LONGEST_CALL: Duration = Duration::from_secs(40);

/// How long a process reserves a report. During this time, no other process makes the report. The time is longer than
/// the process waits for a call (`LIMIT`).
pub(super) const TELLING: Duration = Duration::from_secs(60);

/// A series of hook calls. After a request to stop, no further call is made once the series is older than [`LIMIT`].
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

    /// Whether the series is over, so that no further call is made.
    pub(super) fn is_over(&self) -> bool {
        self.stop.takes(LONGEST_CALL);
        self.stop.is_asked() && self.began.elapsed() > LIMIT
    }
}

/// Calls a function on a thread of its own, where it may block, within the runtime. Returns whether it was called.
/// If no thread can be started, the call is left to another process.
///
/// The end of the runtime does not wait for this thread, as it would for a thread of `spawn_blocking`.
///
/// If the function panics or takes too long, the call is not repeated, because the repeats could go on forever.
pub(super) async fn call(name: &'static str, hook: impl FnOnce() + Send + 'static) -> bool {
    let (sender, called) = oneshot::channel();
    let runtime = Handle::current();
    let thread = thread::Builder::new().name(name.into()).spawn(move || {
        let _within = runtime.enter();
        // Nothing waits for the result once the call has taken too long.
        let _ = sender.send(panic::catch(hook));
    });
    if let Err(error) = thread {
        tracing::warn!(hook = name, %error, "a hook could not be called: there is no thread for it");
        return false;
    }
    match tokio::time::timeout(LIMIT, called).await {
        Err(_) => tracing::warn!(
            hook = name,
            "a hook takes longer than {LIMIT:?}: its report may arrive after the next one"
        ),
        Ok(Ok(Err(payload))) => {
            let message = panic::into_message(payload);
            tracing::error!(hook = name, message, "a hook for webhooks panicked");
        }
        // The thread always sends.
        Ok(Ok(Ok(())) | Err(_)) => {}
    }
    true
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_hook_that_hangs_does_not_hold_up_the_end_of_the_runtime() -> std::io::Result<()> {
        let runtime = tokio::runtime::Runtime::new()?;
        let (begun, begins) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let (ended, ends) = mpsc::channel();
        runtime.spawn(call("test", move || {
            let _ = begun.send(());
            let _ = released.recv();
        }));
        assert!(begins.recv_timeout(LIMIT).is_ok());
        thread::spawn(move || {
            drop(runtime);
            let _ = ended.send(());
        });
        let has_ended = ends.recv_timeout(LIMIT).is_ok();
        drop(release);
        assert!(has_ended);
        Ok(())
    }
}
