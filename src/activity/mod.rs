//! The activity of a layer, counted by hour in small tables: requests and attempts by outcome, handler times, and
//! rejected requests by cause.
//!
//! A request only adds to a number in memory. Every few seconds, a *watch* (`watch.rs`) flushes the numbers of its
//! layers, if there are any, in one short transaction (`flush.rs`). Every half a minute, it reads the layers' metrics
//! that cover all processes (`readings.rs`). The settings of a layer are written together with its first numbers, and
//! hourly after that.

pub(crate) mod counts;
pub(crate) mod endpoint_name;
mod flush;
mod numbers;
pub(crate) mod problem;
mod readings;
mod renamed;
mod statements;
mod watch;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use tokio::time::Instant;

use crate::metrics::Metrics;
use crate::tasks_and_errors::background::Background;
use crate::transaction::Store;
use endpoint_name::EndpointName;
pub(crate) use numbers::Source;
use numbers::{MAX_VERSIONS, Numbers, OfTable, Types, bucket};
use readings::Readings;
pub(crate) use watch::{INTERVAL, IsWatched, Rounds};

/// The activity of a layer. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Activity(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    endpoint: Arc<str>,
    /// This can be upgraded for as long as the layer exists.
    layer: Weak<EndpointName>,
    readings: Readings,
    state: Mutex<State>,
    told: OnceLock<Told>,
    /// When the settings were last written. The lock is held during each write.
    told_at: tokio::sync::Mutex<Option<Instant>>,
}

#[derive(Debug)]
struct State {
    store: Store,
    numbers: Numbers,
    types: Types,
    versions: Types,
    /// The watches of the recoveries that the layer has joined.
    joined: Vec<IsWatched>,
    /// The layer's own watch. It starts once something was counted or must be read.
    own_watch: Option<Background>,
}

/// The settings that a layer reports to the dashboard.
#[derive(Debug)]
pub(crate) struct Told {
    /// The version of the application.
    pub(crate) version: Arc<str>,
    /// The settings, as a JSON object.
    pub(crate) settings: String,
}

impl Activity {
    pub(crate) fn new(
        endpoint: Arc<str>,
        layer: &Arc<EndpointName>,
        store: Store,
        metrics: Metrics,
    ) -> Self {
        Self(Arc::new(Shared {
            endpoint,
            layer: Arc::downgrade(layer),
            readings: Readings::new(metrics),
            state: Mutex::new(State {
                store,
                numbers: Numbers::default(),
                types: Types::default(),
                versions: Types::default(),
                joined: Vec::new(),
                own_watch: None,
            }),
            told: OnceLock::new(),
            told_at: tokio::sync::Mutex::default(),
        }))
    }

    /// Sets how long a write may take.
    pub(crate) fn set_timeout(&self, timeout: Duration) {
        self.0.state().store.timeout = timeout;
    }

    /// Sets the settings to report, once the layer is complete. Only the first call has an effect.
    pub(crate) fn tell(&self, told: impl FnOnce() -> Told) {
        self.0.told.get_or_init(told);
    }

    /// Makes the metrics show when the last authentic request arrived at any process.
    pub(crate) fn tell_last_authentic(&self) {
        self.0.readings.tell_last_authentic();
        self.ensure_watched();
    }

    /// Makes the metrics show how many event types are new or have stopped.
    pub(crate) fn tell_types(&self) {
        self.0.readings.tell_types();
        self.ensure_watched();
    }

    /// Counts an outcome. It is written within seconds.
    pub(crate) fn count(&self, source: Source, outcome: &'static str) {
        self.counting().numbers.add(source, outcome.into(), 1);
    }

    /// Counts the time that a handler took.
    pub(crate) fn count_handler(&self, took: Duration) {
        self.count(Source::Handler, bucket(took));
    }

    /// Counts an event that the application ignores by this name (`Events::ignore`).
    pub(crate) fn count_ignored_by_name(&self, name: &str) {
        let mut state = self.counting();
        state
            .numbers
            .add(Source::Ignored, name.to_owned().into(), 1);
    }

    /// Counts an ignored event whose type matches no name in the layer's table. A sender may have made the type up, so
    /// the number of stored types is bounded.
    pub(crate) fn count_ignored(&self, event_type: &str) {
        let mut state = self.counting();
        let name = state.types.name(event_type);
        state.numbers.see(&name, OfTable::No);
        state.numbers.add(Source::Ignored, name, 1);
    }

    /// Records that an event with a handler arrived. `name` is the handler's name in the layer's table of event types.
    pub(crate) fn see_handled(&self, name: &str) {
        self.counting().numbers.see(name, OfTable::Yes);
    }

    /// Counts a payload version that is not expected.
    pub(crate) fn count_version(&self, version: &str) {
        let mut state = self.counting();
        let name = state.versions.name_within(version, MAX_VERSIONS);
        state.numbers.add(Source::Version, name, 1);
    }

    /// Counts a rejected request. The reason is stored, so it must contain nothing from the request.
    pub(crate) fn count_rejection(&self, cause: &'static str, reason: &str) {
        self.counting().numbers.add_rejection(cause, reason);
    }

    fn store(&self) -> Store {
        self.0.state().store.clone()
    }

    fn counting(&self) -> MutexGuard<'_, State> {
        let mut state = self.0.state();
        self.watched(&mut state);
        state
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
