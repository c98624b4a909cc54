//! The watch of layers: a loop that flushes their counts, and reads their metrics. All layers that have joined a
//! spawned recovery share the recovery's watch. Any other layer has its own watch. A layer always has a watch while it
//! has something to write.

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

/// How often the metrics that cover all processes are read.
const READ_INTERVAL: Duration = Duration::from_secs(30);

/// Whether the watch of a recovery is running. The recovery and each layer that has joined it have a clone, and all
/// clones share the value.
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

/// What a watch does in each round, and its state between rounds.
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
    /// Leaves the layer to the watch of a recovery, for as long as that watch is running.
    pub(crate) fn join(&self, watch: IsWatched) {
        self.0.state().joined.push(watch);
    }

    /// Makes sure that a watch serves the layer, if there is something to write or to read.
    pub(crate) fn ensure_watched(&self) {
        // A router may be built before there is a runtime. In that case, the first request starts the watch.
        if Handle::try_current().is_err() {
            return;
        }
        let mut state = self.0.state();
        if !state.numbers.is_empty() || self.0.readings.are_wanted() {
            self.watched(&mut state);
        }
    }

    /// Starts the layer's own watch if no other watch is running. The caller holds the lock of `state`. So a watch that
    /// is about to end has either seen the counts to write, or already counts as ended.
    pub(super) fn watched(&self, state: &mut State) {
        // The runtime of an earlier watch may have shut down.
        let has_own = state.own_watch.as_ref();
        if has_own.is_none_or(Background::has_ended) && !state.is_joined() {
            let shared = Arc::downgrade(&self.0);
            let watch = Background::spawn("activity", move |_| watch_alone(shared.clone()));
            state.own_watch = Some(watch);
        }
    }

    /// Whether the layer is gone, and nothing is left to write or to read.
    pub(crate) fn is_over(&self) -> bool {
        self.0.is_over(&self.0.state())
    }

    /// Ends the layer's own watch if the watch of a recovery is running, or the layer is gone. Returns whether the
    /// watch ends.
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
    /// Whether the watch of a recovery is running.
    fn is_joined(&self) -> bool {
        self.joined.iter().any(IsWatched::get)
    }
}

/// The watch of one layer. It runs for as long as the layer exists, and until the layer's last counts are written.
async fn watch_alone(shared: Weak<Shared>) {
    let Some(activity) = shared.upgrade().map(Activity) else {
        return;
    };
    // Event types change slowly, so they are not read at the start, while the first deliveries arrive. The time of the
    // last authentic request is read at the start, because a silence is measured from that time.
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
