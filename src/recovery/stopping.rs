//! `RecoveryTask`: stops everything that runs outside of requests, all at the same time and within a limit, and
//! lists what was left.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use super::shared::Shared;
use crate::tasks_and_errors::background::Background;

/// How long a server may wait for its connections. Without a limit, a sender that falls silent would hold up the server
/// forever.
const SERVER_LIMIT: Duration = Duration::from_secs(10);

/// The part of the limit that is reserved for the process to sign off in the database (`leave` in `liveness/mod.rs`).
const GOODBYE: Duration = Duration::from_secs(1);

/// How long a call of a hook, or a round of the watch (`process_watch.rs`), may go on.
const HOOK_LIMIT: Duration = Duration::from_secs(10);

const SERVER: &str = "the server";

/// The handle of a running [`Recovery`](crate::Recovery).
pub struct RecoveryTask {
    pub(super) shared: Arc<Shared>,
    pub(super) runner: Background,
    pub(super) watch: Background,
    pub(super) telling: Background,
    /// The tasks that [`with`](crate::Recovery::with) has added.
    pub(super) others: Vec<Background>,
    pub(super) limit: Duration,
}

/// The work that had not ended when a [`RecoveryTask`] was stopped. This work is rolled back at the end of the
/// process, and another process takes over the kept deliveries.
///
/// Its `Display` is for a log: `recovery, deliveries of billing`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unfinished(BTreeSet<String>);

impl Unfinished {
    /// Whether everything has ended.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What has not ended: `the server`, if it still waits for connections; `recovery`, `watch`, `hooks`,
    /// `retention`, `reconciliation`, `subscriptions`; and `deliveries of` an endpoint.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, name) in self.0.iter().enumerate() {
            let separator = if number == 0 { "" } else { ", " };
            write!(f, "{separator}{name}")?;
        }
        Ok(())
    }
}

impl RecoveryTask {
    /// Stops everything that this handle runs, and waits for the layers that have joined it. Use this in programs
    /// without a server. With a server, use [`stop_with`](Self::stop_with).
    pub async fn stop(self) -> Unfinished {
        self.stop_with(std::future::ready(())).await
    }

    /// Stops everything that this handle runs, next to a server that is stopping as well, and returns what has not
    /// ended in time.
    ///
    /// Work that has not finished within the [limit](crate::Recovery::stop_limit) is also logged at WARN. Call this
    /// when the stop signal arrives, and end the process when it returns:
    ///
    /// 1. At once, recovery stops taking deliveries, and gives back taken deliveries whose attempts have not
    ///    started. Reconciliation, comparisons of subscriptions and retention are interrupted. A running hook has
    ///    ten seconds to end.
    /// 2. The server has ten seconds to end, or two fifths of the limit if that is less. A sender that falls silent
    ///    in the middle of its request would hold up the server forever.
    /// 3. Deliveries in flight have the rest of the time to end. After that, the counts are written, and the process
    ///    signs off in the database, so that no other process takes it for dead.
    ///
    /// `server` is a future that ends when the server has stopped, such as the handle of its task. The server must
    /// be stopping already, or stop by itself.
    pub async fn stop_with<F: Future>(self, server: F) -> Unfinished {
        let deadline = Instant::now() + self.limit;
        let goodbye = GOODBYE.min(self.limit / 10);
        let mut stopping = Stopping::default();
        for task in self.others {
            stopping.add(task.name().to_owned(), task.stop());
        }
        for task in [self.watch, self.telling] {
            stopping.add(task.name().to_owned(), task.stop_within(HOOK_LIMIT));
        }
        stopping.add(self.runner.name().to_owned(), self.runner.stop());
        let server_limit = SERVER_LIMIT.min(self.limit * 2 / 5);
        let has_served = timeout(server_limit, server).await.is_ok();
        for layer in self.shared.joined_layers.all() {
            let name = format!("deliveries of {}", layer.endpoint);
            stopping.add(name, async move { layer.drained().await });
        }
        let mut left = stopping.until(deadline - goodbye).await;
        // Layers also take deliveries under numbers of this recovery, so the numbers are given up after the layers have
        // stopped.
        if timeout_at(deadline, self.shared.liveness.leave())
            .await
            .is_err()
        {
            left.0.insert("recovery".to_owned());
        }
        if !has_served {
            left.0.insert(SERVER.to_owned());
        }
        if !left.is_empty() {
            tracing::warn!(unfinished = %left, "webhook work has not ended in time");
        }
        left
    }
}

impl fmt::Debug for RecoveryTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecoveryTask")
            .field("others", &self.others)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

/// The tasks and layers that are stopping. A separate task waits for each of them.
#[derive(Default)]
struct Stopping {
    names: Vec<String>,
    tasks: JoinSet<usize>,
}

impl Stopping {
    fn add(&mut self, name: String, work: impl Future<Output = ()> + Send + 'static) {
        let number = self.names.len();
        self.names.push(name);
        self.tasks.spawn(async move {
            work.await;
            number
        });
    }

    /// Waits until all tasks and layers have ended, at most until the deadline.
    async fn until(mut self, deadline: Instant) -> Unfinished {
        let mut left: BTreeSet<usize> = (0..self.names.len()).collect();
        while let Ok(Some(ended)) = timeout_at(deadline, self.tasks.join_next()).await {
            if let Ok(number) = ended {
                left.remove(&number);
            }
        }
        let names = self.names.into_iter().enumerate();
        let left = names.filter(|(number, _)| left.contains(number));
        Unfinished(left.map(|(_, name)| name).collect())
    }
}
