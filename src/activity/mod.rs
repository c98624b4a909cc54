//! The activity of a layer, counted by hour in small tables: requests and attempts by outcome, the times of
//! handlers, and rejected requests by cause.
//!
//! A request only adds to a number in memory. Every few seconds a task flushes the numbers of a layer, in one
//! short transaction (`flush.rs`). It ends when there is nothing to write, so an idle layer costs nothing.
//! The settings of the layer are written beside the first numbers, and then hourly.

mod flush;
mod last_authentic;
mod numbers;
mod renamed;
mod statements;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tokio::time::Instant;

use crate::transaction::Store;
pub(crate) use last_authentic::report_last_authentic;
use numbers::Numbers;
pub(crate) use numbers::{DEAD, MISSED, Source};

/// The activity of a layer. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Activity(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    endpoint: Arc<str>,
    numbers: Numbers,
    told: OnceLock<Told>,
    told_at: Mutex<Option<Instant>>,
    /// Held while numbers are on their way to Postgres.
    writing: tokio::sync::Mutex<()>,
    /// Whether there is a task that writes.
    has_writer: AtomicBool,
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
    pub(crate) fn new(endpoint: Arc<str>) -> Self {
        Self(Arc::new(Shared {
            endpoint,
            numbers: Numbers::default(),
            told: OnceLock::new(),
            told_at: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
            has_writer: AtomicBool::new(false),
        }))
    }

    /// Sets what is told of the layer once it is complete. The first call counts.
    pub(crate) fn tell(&self, told: impl FnOnce() -> Told) {
        self.0.told.get_or_init(told);
    }

    /// Counts, and has it written to `store` within seconds.
    pub(crate) fn count(&self, store: &Store, source: Source, outcome: &'static str) {
        self.0.numbers.add(source, outcome);
        self.ensure_writer(store);
    }

    /// The same for the time that a handler took.
    pub(crate) fn count_handler(&self, store: &Store, took: Duration) {
        self.0.numbers.add_time(took);
        self.ensure_writer(store);
    }

    /// The same for an ignored event. Its type is stored, unless it is not to be trusted.
    pub(crate) fn count_ignored(&self, store: &Store, event_type: Option<&str>) {
        self.0.numbers.add_ignored(event_type);
        self.ensure_writer(store);
    }

    /// The same for a rejected request. Its reason is stored, so it must have nothing of the request.
    pub(crate) fn count_rejection(&self, store: &Store, cause: &'static str, reason: &str) {
        self.0.numbers.add_rejection(cause, reason);
        self.ensure_writer(store);
    }
}
