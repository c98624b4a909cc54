//! Background tasks. All long-lived tasks of this crate are spawned here. Such a task is a loop that ends when it is
//! asked to stop, or when nothing is left for it to do. If a loop panics, the panic is logged at ERROR, and the loop
//! starts again.

use std::time::Duration;

use tokio::task::JoinHandle;

use super::panic::{catch_panic, into_message};
use super::progress::Progress;
use super::stop_signal::{Stop, StopSender};

/// The pause before a loop starts again, because the cause of the panic may still be there.
const PAUSE: Duration = Duration::from_secs(1);

/// How long a loop may take until it reports progress for the first time.
const START: Duration = Duration::from_secs(30);

/// A loop in the background. Dropping this does not end the loop.
#[derive(Debug)]
pub(crate) struct Background {
    name: &'static str,
    stop: StopSender,
    progress: Progress,
    task: JoinHandle<()>,
}

impl Background {
    /// Spawns a loop: the future that `begin` returns. The loop has ended once that future completes.
    pub(crate) fn spawn<W>(
        name: &'static str,
        mut begin: impl FnMut(Stop) -> W + Send + 'static,
    ) -> Self
    where
        W: Future<Output = ()> + Send + 'static,
    {
        let (sender, mut stop) = Stop::channel();
        stop.takes(START);
        let progress = stop.progress().clone();
        let task = async move {
            loop {
                // A loop that panics after it was asked to stop starts again at most once.
                let is_last = stop.is_asked();
                if guarded(name, begin(stop.clone())).await.is_some() || is_last {
                    stop.progress().unlimited();
                    return;
                }
                let _ = stop.or(tokio::time::sleep(PAUSE)).await;
            }
        };
        Self {
            name,
            stop: sender,
            progress,
            task: tokio::spawn(task),
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Asks the loop to stop, and waits until it has ended.
    pub(crate) async fn stop(self) {
        self.stop.send();
        // The task neither panics nor is aborted, but the runtime may be shutting down.
        let _ = self.task.await;
    }

    /// Asks the loop to stop, and aborts it if it has not ended after this time.
    pub(crate) async fn stop_within(mut self, limit: Duration) {
        self.stop.send();
        if tokio::time::timeout(limit, &mut self.task).await.is_err() {
            self.task.abort();
        }
    }

    /// Whether the loop has ended, or its runtime has shut down.
    pub(crate) fn has_ended(&self) -> bool {
        self.task.is_finished()
    }
}

/// Spawns work that ends by itself. A loop that must go on after a panic needs [`Background`], or [`guarded`] around
/// each of its rounds.
pub(crate) fn spawn_once(name: &'static str, work: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(async move {
        guarded(name, work).await;
    });
}

/// Runs work in the background. Returns its output, or `None` if it panicked. A panic is logged.
pub(crate) async fn guarded<T>(name: &'static str, work: impl Future<Output = T>) -> Option<T> {
    match catch_panic(work).await {
        Ok(output) => Some(output),
        Err(payload) => {
            let message = into_message(payload);
            tracing::error!(
                task = name,
                message,
                "a background task of webhooks panicked"
            );
            None
        }
    }
}

#[cfg(test)]
#[expect(clippy::panic, reason = "the tests panic on purpose")]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// Panics when it is dropped.
    struct Evil;

    impl Drop for Evil {
        fn drop(&mut self) {
            std::panic::panic_any(Self);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_panics_begins_anew_whatever_the_payload_is() {
        let begun = Arc::new(AtomicU32::new(0));
        let count = begun.clone();
        let background = Background::spawn("test", move |mut stop| {
            let times = count.fetch_add(1, Ordering::SeqCst);
            async move {
                if times < 3 {
                    std::panic::panic_any(Evil);
                }
                stop.asked().await;
            }
        });
        tokio::time::sleep(PAUSE * 4).await;
        assert_eq!(begun.load(Ordering::SeqCst), 4);
        assert!(!background.has_ended());
        background.stop().await;
        assert_eq!(begun.load(Ordering::SeqCst), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_always_panics_stops() {
        let background = Background::spawn("test", |_| async { panic!("on purpose") });
        tokio::time::sleep(PAUSE * 3).await;
        assert!(!background.has_ended());
        background.stop().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_does_not_come_round_is_overdue() {
        let rest = Duration::from_secs(3600);
        let stuck = Background::spawn("stuck", move |mut stop| async move {
            let _ = stop.rest(rest).await;
            std::future::pending().await
        });
        let well = Background::spawn("well", move |mut stop| async move {
            while stop.rest(rest).await.is_some() {}
        });
        let panics = Background::spawn("panics", |_| async { panic!("on purpose") });
        tokio::time::sleep(rest).await;
        assert!(!stuck.progress().is_overdue());
        assert!(panics.progress().is_overdue());
        tokio::time::sleep(START).await;
        assert!(stuck.progress().is_overdue());
        assert!(!well.progress().is_overdue());
        let ended = well.progress().clone();
        well.stop().await;
        tokio::time::sleep(rest * 2).await;
        assert!(!ended.is_overdue());
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_does_not_end_in_time_is_aborted() {
        let held = Arc::new(());
        let clone = held.clone();
        let background = Background::spawn("test", move |_| {
            let clone = clone.clone();
            async move {
                let _clone = clone;
                std::future::pending().await
            }
        });
        background.stop_within(PAUSE).await;
        while Arc::strong_count(&held) > 1 {
            tokio::task::yield_now().await;
        }
    }
}
