//! The watch of a process: what it says and looks for all the time, for all layers of a recovery. It says which endpoints it
//! recovers, looks how these are, and flushes what was counted.

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

/// How long a process that has kept its first delivery waits for another one to recover it.
const PATIENCE: Duration = Duration::from_secs(5);

/// A process that has just started looks without judging which endpoints no process recovers, and then once more: a rolling
/// deploy may start the first process of an endpoint later.
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

/// Deliveries are counted up to this number, so that the count is bounded. That of all endpoints together is bounded as well,
/// but each may have [a few](LEAST_COUNT).
const MAX_COUNT: i64 = 10_000;

const LEAST_COUNT: i64 = 100;

/// The watch of a process, until it is asked to stop: it flushes what all layers have counted and, every half a minute, says
/// what this process recovers, looks how the endpoints are, and reads what the metrics tell. `looked` hears of each look.
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
        // In two rounds: a process that was frozen finds all of them overdue at first.
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

/// A loop of this process, as the watch sees it.
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

/// Which loops do not come round. Those of several lists have one name.
fn overdue_of(tasks: &[WatchedTask]) -> BTreeSet<&'static str> {
    let overdue = tasks.iter().filter(|task| task.progress.is_overdue());
    overdue.map(|task| task.name).collect()
}

fn log_stalled(before: &BTreeSet<&str>, now: &BTreeSet<&str>) {
    for task in now.difference(before) {
        tracing::error!(
            task,
            "a background task of webhooks has stopped, although its process lives: a thread may be blocked, as by a \
             handler"
        );
    }
    for task in before.difference(now) {
        tracing::info!(task, "a background task of webhooks goes on");
    }
}

/// Tells the hooks after each look of the watch, also after its last one. They are the application's, and may take their time:
/// the watch does not wait for them.
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

/// The same once, for a process that comes and goes. It does not judge which endpoints no process recovers.
pub(super) async fn look_once(shared: &Shared, on_change: Option<&OnChange>, is_forced: bool) {
    let look = Look {
        is_forced,
        judges_absence: false,
    };
    let (_never, stop) = Stop::channel();
    serve_and_look(shared, &BTreeSet::new(), look).await;
    tell_hooks(shared, on_change, &stop).await;
}

/// Says what this process recovers and which of its loops have stopped, and looks how all endpoints are.
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

/// Reports to the hooks of this process.
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

/// Counts for the metrics what has failed and waits, and what no process recovers. `unserved` are the endpoints of which such
/// a number was set before.
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

/// Warns if no process recovers an endpoint of which a delivery was kept. Until then it holds nothing of a process or of
/// a test that ends: no connection, above all.
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
            tracing::debug!(%error, "could not see whether a process recovers a webhook endpoint")
        }
    }
}
