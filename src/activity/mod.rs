//! The activity of a layer, counted by hour in small tables: requests and attempts by outcome, the times of
//! handlers, and rejected requests by cause.
//!
//! A request only adds to a number in memory. Every few seconds a watch (`watch.rs`) flushes the numbers of its layers, if
//! there are any, in one short transaction (`flush.rs`), and every half a minute it reads what their metrics tell of all
//! processes (`readings.rs`). The settings of a layer are written beside its first numbers, and then hourly.

mod flush;
mod numbers;
mod readings;
mod renamed;
mod statements;
mod watch;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use tokio::time::Instant;

use crate::background::Background;
use crate::endpoint_name::EndpointName;
use crate::metrics::Metrics;
use crate::transaction::Store;
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
    /// It is there for as long as the layer is.
    layer: Weak<EndpointName>,
    readings: Readings,
    state: Mutex<State>,
    told: OnceLock<Told>,
    /// When the settings were written. Held while anything is written.
    told_at: tokio::sync::Mutex<Option<Instant>>,
}

#[derive(Debug)]
struct State {
    store: Store,
    numbers: Numbers,
    types: Types,
    versions: Types,
    /// Those of the recoveries that the layer has joined.
    joined: Vec<IsWatched>,
    /// That of the layer alone, since something was counted or is to be read.
    own_watch: Option<Background>,
}

/// What the dashboard is told of a layer.
#[derive(Debug)]
pub(crate) struct Told {
    /// That of the application.
    pub(crate) version: Arc<str>,
    /// The settings, as an object in JSON.
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

    /// How long it may take to write.
    pub(crate) fn set_timeout(&self, timeout: Duration) {
        self.0.state().store.timeout = timeout;
    }

    /// Sets what is told of the layer once it is complete. The first call counts.
    pub(crate) fn tell(&self, told: impl FnOnce() -> Told) {
        self.0.told.get_or_init(told);
    }

    /// Has the metrics tell when the last authentic request of all processes came.
    pub(crate) fn tell_last_authentic(&self) {
        self.0.readings.tell_last_authentic();
        self.ensure_watched();
    }

    /// Has the metrics tell how many event types are new or have stopped.
    pub(crate) fn tell_types(&self) {
        self.0.readings.tell_types();
        self.ensure_watched();
    }

    /// Counts, and has it written within seconds.
    pub(crate) fn count(&self, source: Source, outcome: &'static str) {
        self.counting().numbers.add(source, outcome.into(), 1);
    }

    /// The same for the time that a handler took.
    pub(crate) fn count_handler(&self, took: Duration) {
        self.count(Source::Handler, bucket(took));
    }

    /// The same for an event that is ignored by this name of the table.
    pub(crate) fn count_ignored_by_name(&self, name: &str) {
        let mut state = self.counting();
        state
            .numbers
            .add(Source::Ignored, name.to_owned().into(), 1);
    }

    /// The same for an event that no name of the table matches. A sender may have chosen its type, so there is a bound on
    /// what is stored of types.
    pub(crate) fn count_ignored(&self, event_type: &str) {
        let mut state = self.counting();
        let name = state.types.name(event_type);
        state.numbers.see(&name, OfTable::No);
        state.numbers.add(Source::Ignored, name, 1);
    }

    /// Notes that an event has come whose handler has this name in the table.
    pub(crate) fn see_handled(&self, name: &str) {
        self.counting().numbers.see(name, OfTable::Yes);
    }

    /// The same for a version of the payload that is not expected.
    pub(crate) fn count_version(&self, version: &str) {
        let mut state = self.counting();
        let name = state.versions.name_within(version, MAX_VERSIONS);
        state.numbers.add(Source::Version, name, 1);
    }

    /// The same for a rejected request. Its reason is stored, so it must have nothing of the request.
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
