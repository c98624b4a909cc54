//! How a background task is asked to stop, and how it reports progress.

use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::watch;

use super::progress::Progress;

/// How much later than announced a loop may report progress on a busy machine.
const LATE: Duration = Duration::from_secs(10);

/// The side that asks the task to stop.
#[derive(Debug)]
pub(crate) struct StopSender(watch::Sender<bool>);

/// The side that is asked to stop.
#[derive(Clone, Debug)]
pub(crate) struct Stop {
    asked: watch::Receiver<bool>,
    progress: Progress,
}

impl StopSender {
    pub(crate) fn send(&self) {
        self.0.send_replace(true);
    }
}

impl Stop {
    pub(crate) fn channel() -> (StopSender, Self) {
        let (sender, asked) = watch::channel(false);
        let progress = Progress::default();
        (StopSender(sender), Self { asked, progress })
    }

    pub(crate) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Announces that the next work of the loop takes at most this long.
    pub(crate) fn takes(&self, limit: Duration) {
        self.progress.within(limit.saturating_add(LATE));
    }

    /// Announces that the work that the loop waits for makes progress, and will take at most this long. The loop never
    /// has less time than before.
    pub(crate) fn takes_longer(&self, limit: Duration) {
        self.progress.at_least_within(limit.saturating_add(LATE));
    }

    /// Rests between two rounds. Returns `None` if the task is asked to stop first.
    pub(crate) async fn rest(&mut self, time: Duration) -> Option<()> {
        self.takes(time);
        self.or(tokio::time::sleep(time)).await
    }

    pub(crate) fn is_asked(&self) -> bool {
        *self.asked.borrow()
    }

    pub(crate) async fn asked(&mut self) {
        if self.asked.wait_for(|asked| *asked).await.is_err() {
            // The sender was dropped, so nobody will ask the task to stop.
            std::future::pending().await
        }
    }

    /// The output of a future, or `None` if the task is asked to stop first.
    pub(crate) async fn or<T>(&mut self, future: impl Future<Output = T>) -> Option<T> {
        first(self.asked(), future).await
    }

    /// The output of a future, or `None` if the future has not completed this long after the task was asked to stop.
    pub(crate) async fn or_after<T>(
        &mut self,
        grace: Duration,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        let over = async {
            self.asked().await;
            tokio::time::sleep(grace).await;
        };
        first(over, future).await
    }
}

/// The output of a future, or `None` if `end` completes first.
pub(crate) async fn first<T>(
    end: impl Future<Output = ()>,
    future: impl Future<Output = T>,
) -> Option<T> {
    let (mut end, mut future) = (pin!(end), pin!(future));
    std::future::poll_fn(|cx| match end.as_mut().poll(cx) {
        Poll::Ready(()) => Poll::Ready(None),
        Poll::Pending => future.as_mut().poll(cx).map(Some),
    })
    .await
}
