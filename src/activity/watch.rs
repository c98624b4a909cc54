//! The watch of layers: one loop that flushes their counts, and reads their metrics. All layers that have joined a
//! spawned recovery share the watch of the recovery, and any other layer has one of its own. A layer is never without
//! one while it has something to write.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;

use super::{Activity, Shared, State, flush, readings};
use crate::tasks_and_errors::background::Background;
use crate::transaction::Store;

/// The time between two rounds. Each round flushes.
pub(crate) const INTERVAL: Duration = Duration::from_secs(5);

/// How often the readings of the metrics are read.
const READ_INTERVAL: Duration = Duration::from_secs(30);

/// Whether the watch of a recovery runs. Clones share it: the recovery has one, and each layer that has joined it.
#[derive(Clone, Debug, Default)]
pub(crate) struct IsWatched(Arc<AtomicBool>);

impl IsWatched {
    fn get(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    pub(crate) fn set(&self, runs: bool) {
        self.0.store(runs, Ordering::SeqCst);
    }
}

/// The work of a watch in its rounds.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    read_at: Option<Instant>,
    has_warned: bool,
}

impl Rounds {
    /// Flushes the counts of these layers in one transaction.
    pub(crate) async fn flush(&mut self, layers: &[Activity], store: &Store) {
        match flush::write(layers, store).await {
            Ok(()) => self.has_warned = false,
            Err(_) if store.pool().is_closed() => {}
            Err(error) if !std::mem::replace(&mut self.has_warned, true) => tracing::warn!(
                endpoint = names(layers),
                %error,
                "could not write the activity of a webhook endpoint, trying again"
            ),
            Err(_) => {}
        }
    }

    /// Reads the metrics of these layers in one transaction, if it is time to.
    pub(crate) async fn read(&mut self, layers: &[Activity], store: &Store) {
        if self.read_at.is_some_and(|at| at.elapsed() < READ_INTERVAL) {
            return;
        }
        self.read_at = Some(Instant::now());
        if let Err(error) = readings::read(layers, store).await {
            tracing::debug!(%error, "could not read the metrics of webhook endpoints");
        }
    }
}

fn names(layers: &[Activity]) -> String {
    let names: Vec<_> = layers.iter().map(|layer| &*layer.0.endpoint).collect();
    names.join(", ")
}

impl Activity {
    /// Leaves the layer to the watch of a recovery for as long as that watch runs.
    pub(crate) fn join(&self, watch: IsWatched) {
        self.0.state().joined.push(watch);
    }

    /// Makes sure that a watch has the layer, if there is something to write or to read.
    pub(crate) fn ensure_watched(&self) {
        // A router may be built before there is a runtime. Then the first request begins.
        if Handle::try_current().is_err() {
            return;
        }
        let mut state = self.0.state();
        if !state.numbers.is_empty() || self.0.readings.are_wanted() {
            self.watched(&mut state);
        }
    }

    /// Begins the layer's own watch if no other one runs. Within the lock: a watch that ends at this moment has either
    /// seen the counts to write, or is seen to have ended.
    pub(super) fn watched(&self, state: &mut State) {
        // The runtime of an earlier one may have shut down.
        let has_own = state.own_watch.as_ref();
        if has_own.is_none_or(Background::has_ended) && !state.is_joined() {
            let shared = Arc::downgrade(&self.0);
            let watch = Background::spawn("activity", move |_| watch_alone(shared.clone()));
            state.own_watch = Some(watch);
        }
    }

    /// Whether there is nothing more to write or read: the layer is gone.
    pub(crate) fn is_over(&self) -> bool {
        self.0.is_over(&self.0.state())
    }

    /// Ends the layer's own watch if the one of a recovery runs, or the layer is gone. Returns whether it ends.
    fn ends_own_watch(&self) -> bool {
        let mut state = self.0.state();
        let ends = self.0.is_over(&state) || state.is_joined() || state.store.pool().is_closed();
        if ends {
            state.own_watch = None;
        }
        ends
    }
}

impl Shared {
    fn is_over(&self, state: &State) -> bool {
        self.layer.strong_count() == 0 && state.numbers.is_empty()
    }
}

impl State {
    /// Whether the watch of a recovery runs.
    fn is_joined(&self) -> bool {
        self.joined.iter().any(IsWatched::get)
    }
}

/// The watch of one layer, for as long as the layer exists, and until its last counts are written.
async fn watch_alone(shared: Weak<Shared>) {
    let Some(activity) = shared.upgrade().map(Activity) else {
        return;
    };
    // Types change slowly, so they are not read at the start, beside the first deliveries. The time of the last
    // authentic request is, since a silence counts from then.
    let waits = !activity.0.readings.tells_last_authentic();
    let mut rounds = Rounds {
        read_at: waits.then(Instant::now),
        has_warned: false,
    };
    while !activity.ends_own_watch() {
        let (layer, store) = (std::slice::from_ref(&activity), activity.store());
        rounds.read(layer, &store).await;
        tokio::time::sleep(INTERVAL).await;
        rounds.flush(layer, &store).await;
    }
}
