//! The watch: a background task of each process, for all layers of a recovery. It records which endpoints the
//! process recovers, looks for problems of all endpoints, and flushes what the layers have counted.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::dead;
use super::problems::{self, Look, OnChange};
use super::shared::Shared;
use crate::activity::{self, Rounds};
use crate::metrics;
use crate::tasks_and_errors::background::Background;
use crate::tasks_and_errors::progress::Progress;
use crate::tasks_and_errors::stop_signal::Stop;
use crate::transaction::DatabaseError;

/// How often a process looks for problems.
const INTERVAL: Duration = Duration::from_secs(30);

/// How long a process waits, after it has kept its first delivery, before it warns that no process recovers the
/// endpoint.
const PATIENCE: Duration = Duration::from_secs(5);

/// The first look of a process does not report endpoints that no process recovers, because a rolling deploy may start
/// the first process of an endpoint later. The second look, soon after, does report them.
const FIRST_LOOK: Look = Look {
    is_forced: true,
    judges_absence: false,
};
const SECOND_LOOK: Look = Look {
    is_forced: true,
    judges_absence: true,
};
const SECOND_AFTER: Duration = Duration::from_secs(5);

const LOOK: Look = Look {
    is_forced: false,
    judges_absence: true,
};

/// Deliveries are counted only up to this number, so that a count is bounded. The count of failed deliveries of all
/// endpoints together is bounded as well, but each endpoint is counted up to at least [`LEAST_COUNT`].
const MAX_COUNT: i64 = 10_000;

const LEAST_COUNT: i64 = 100;

/// Runs the watch until it is asked to stop. It flushes what all layers have counted. Every half a minute, it also
/// records what this process recovers, looks for problems of all endpoints, and reads the numbers for the metrics.
/// After each look, it notifies `looked`.
pub(super) async fn watch(
    shared: Arc<Shared>,
    tasks: Arc<[WatchedTask]>,
    looked: Arc<watch::Sender<()>>,
    mut stop: Stop,
) {
    let layers = &shared.joined_layers;
    let _watch = layers.watch();
    let mut rounds = Rounds::default();
    let mut unserved = HashSet::new();
    let (mut look, mut next_look) = (FIRST_LOOK, Instant::now());
    let (mut overdue, mut stalled) = (BTreeSet::new(), BTreeSet::new());
    loop {
        let overdue_before = std::mem::replace(&mut overdue, overdue_of(&tasks));
        // A task has stalled if it is overdue in two rounds of this loop. One round is not enough, because a process
        // that was frozen finds all its tasks overdue at first.
        let stalled_now = &overdue & &overdue_before;
        if stalled_now != stalled {
            log_stalled(&stalled, &stalled_now);
            stalled = stalled_now;
            (look.is_forced, next_look) = (true, Instant::now());
        }
        if Instant::now() >= next_look {
            serve_and_look(&shared, &stalled, look).await;
            looked.send_replace(());
            let wait;
            (look, wait) = match look.judges_absence {
                true => (LOOK, INTERVAL),
                false => (SECOND_LOOK, SECOND_AFTER),
            };
            next_look = Instant::now() + wait;
            if cfg!(feature = "metrics")
                && !shared.store.environment().is_elsewhere()
                && let Err(error) = count(&shared, &mut unserved).await
            {
                tracing::debug!(%error, "could not count waiting webhook deliveries");
            }
        }
        if !shared.store.environment().is_elsewhere() {
            rounds.read(&layers.activities(), &shared.store).await;
        }
        if stop
            .or(tokio::time::sleep(activity::INTERVAL))
            .await
            .is_none()
        {
            return;
        }
        rounds.flush(&layers.activities(), &shared.store).await;
        layers.forget_gone();
    }
}

/// A background task of this process, as the watch sees it.
pub(super) struct WatchedTask {
    name: &'static str,
    progress: Progress,
}

impl WatchedTask {
    pub(super) fn of(task: &Background) -> Self {
        Self {
            name: task.name(),
            progress: task.progress().clone(),
        }
    }
}

/// The names of the tasks that are overdue. The tasks of several lists share one name.
fn overdue_of(tasks: &[WatchedTask]) -> BTreeSet<&'static str> {
    let overdue = tasks.iter().filter(|task| task.progress.is_overdue());
    overdue.map(|task| task.name).collect()
}

fn log_stalled(before: &BTreeSet<&str>, now: &BTreeSet<&str>) {
    for task in now.difference(before) {
        tracing::error!(
            task,
            "a webhook background task has stopped, although its process is alive: a thread may be blocked, for \
             example by a handler"
        );
    }
    for task in before.difference(now) {
        tracing::info!(task, "a webhook background task is running again");
    }
}

/// Calls the hooks after each look of the watch, even after its last one. Hooks are functions of the application
/// and may be slow, so the watch does not wait for them.
pub(super) async fn tell(
    shared: Arc<Shared>,
    on_change: Option<OnChange>,
    mut looked: watch::Receiver<()>,
    stop: Stop,
) {
    loop {
        stop.progress().unlimited();
        if looked.changed().await.is_err() {
            return;
        }
        tell_hooks(&shared, on_change.as_ref(), &stop).await;
    }
}

/// Looks for problems and calls the hooks once, for a process that runs only from time to time. It does not report
/// endpoints that no process recovers.
pub(super) async fn look_once(shared: &Shared, on_change: Option<&OnChange>, is_forced: bool) {
    let look = Look {
        is_forced,
        judges_absence: false,
    };
    let (_never, stop) = Stop::channel();
    serve_and_look(shared, &BTreeSet::new(), look).await;
    tell_hooks(shared, on_change, &stop).await;
}

/// Records what this process recovers and which of its tasks have stopped, and looks for problems of all endpoints.
async fn serve_and_look(shared: &Shared, stalled: &BTreeSet<&str>, look: Look) {
    match shared.store.look_at_environment().await {
        Ok(true) => {}
        Ok(false) => return,
        Err(error) => {
            tracing::debug!(%error, "could not look at the environment of the webhook database")
        }
    }
    let endpoints = shared.endpoints.all();
    let names: Vec<&str> = endpoints.iter().map(|served| &*served.endpoint).collect();
    let stalled: Vec<&str> = stalled.iter().copied().collect();
    if !names.is_empty()
        && let Err(error) = shared.store.serve(&names, &stalled).await
    {
        tracing::debug!(%error, "webhook recovery could not record which endpoints it serves");
    }
    if let Err(error) = problems::look(&shared.store, look).await {
        tracing::debug!(%error, "could not look for problems of webhook endpoints");
    }
}

/// Calls the hooks of this process for what is not reported yet.
async fn tell_hooks(shared: &Shared, on_change: Option<&OnChange>, stop: &Stop) {
    if let Some(on_change) = on_change
        && let Err(error) = problems::tell_changes(&shared.store, on_change, stop).await
    {
        tracing::debug!(%error, "could not report the problems of webhook endpoints");
    }
    if let Err(error) = dead::tell_untold(shared, stop).await {
        tracing::debug!(%error, "could not report dead webhooks");
    }
}

/// Counts, for the metrics, the deliveries that have failed and wait, and the due deliveries that no process recovers.
/// `unserved` holds the endpoints for which the metric of unserved deliveries was set before.
async fn count(shared: &Shared, unserved: &mut HashSet<String>) -> Result<(), DatabaseError> {
    let endpoints = shared.endpoints.all();
    let names: Vec<&str> = endpoints.iter().map(|served| &*served.endpoint).collect();
    if !names.is_empty() {
        let endpoints = i64::try_from(names.len()).unwrap_or(i64::MAX);
        let limit = (MAX_COUNT / endpoints).max(LEAST_COUNT);
        for (endpoint, state, count) in shared.store.failing(&names, limit).await? {
            metrics::failing(endpoint, state, count);
        }
    }
    let found = shared.store.unserved(MAX_COUNT).await?;
    for endpoint in unserved.drain() {
        if found.iter().all(|(found, _)| *found != endpoint) {
            metrics::unserved(&endpoint, 0);
        }
    }
    for (endpoint, due) in found {
        metrics::unserved(&endpoint, due);
        unserved.insert(endpoint);
    }
    Ok(())
}

/// Warns if no process recovers an endpoint for which a delivery was kept. The reference is weak, so that the wait
/// keeps nothing alive that a process or a test drops when it ends, such as a connection.
pub(super) async fn warn_if_absent(shared: Weak<Shared>, endpoint: Arc<str>) {
    tokio::time::sleep(PATIENCE).await;
    let Some(shared) = shared.upgrade() else {
        return;
    };
    if shared.is_spawned() {
        return;
    }
    if !shared.is_elsewhere() {
        tracing::warn!(
            endpoint = &*endpoint,
            "webhook deliveries are kept, but this process does not run them again: call \
             `Recovery::spawn` with the router that has this endpoint, or use `Recovery::elsewhere`"
        );
        return;
    }
    match shared.store.is_unserved(&endpoint).await {
        Ok(true) => tracing::warn!(
            endpoint = &*endpoint,
            "webhook deliveries are kept, but no process runs them again: spawn `Recovery` in one that \
             has this endpoint"
        ),
        Ok(false) => {}
        Err(error) => {
            tracing::debug!(%error, "could not check whether a process recovers a webhook endpoint")
        }
    }
}
