//! What came in and with which outcome, counted for each hour in small tables: requests and attempts by
//! outcome, the times of handlers, and rejected requests by cause.
//!
//! A request only adds to a number in memory. Every few seconds a task writes the numbers of a layer,
//! in one short transaction. It ends when there is nothing to write, so an idle layer costs nothing. The
//! settings of the layer are written beside the first numbers, and then hourly.

mod numbers;
mod statements;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::transaction::{DatabaseError, Store};
use numbers::Numbers;
pub(crate) use numbers::{DEAD, MISSED, Source};

/// How often the numbers of a layer are written.
const INTERVAL: Duration = Duration::from_secs(5);

/// How often the settings of a layer are written, while it has numbers to write.
const TELL_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// The activity of a layer. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Activity(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    endpoint: Arc<str>,
    numbers: Numbers,
    told: OnceLock<Told>,
    told_at: Mutex<Option<Instant>>,
    /// Whether there is a task that writes.
    has_writer: AtomicBool,
}

/// What is told of a layer.
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
            has_writer: AtomicBool::new(false),
        }))
    }

    /// The layer is finished: what is told of it is made, unless it was made before.
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

    /// The same for a rejected request. Its reason is stored, so it must have nothing of the request.
    pub(crate) fn count_rejection(&self, store: &Store, cause: &'static str, reason: &str) {
        self.0.numbers.add_rejection(cause, reason);
        self.ensure_writer(store);
    }

    /// Writes what is not written yet, or leaves it for later.
    pub(crate) async fn write(&self, store: &Store) -> Result<(), DatabaseError> {
        let shared = &*self.0;
        let endpoint = &*shared.endpoint;
        let told = shared.told.get();
        let version = told.map_or("", |told| &*told.version);
        let taken = shared.numbers.take();
        // In the same order in all processes, and each in the order of its key.
        let mut statements = Vec::new();
        statements.extend(statements::add_counts(endpoint, version, &taken));
        statements.extend(statements::add_rejections(endpoint, &taken));
        if statements.is_empty() {
            return Ok(());
        }
        let told = told.filter(|_| shared.is_to_tell());
        statements.extend(told.map(|told| statements::tell_settings(endpoint, told)));
        store.run_all(statements).await?;
        taken.forget();
        if told.is_some() {
            *shared.told_at() = Some(Instant::now());
        }
        Ok(())
    }

    fn ensure_writer(&self, store: &Store) {
        let has_writer = &self.0.has_writer;
        if has_writer.load(Ordering::SeqCst) || has_writer.swap(true, Ordering::SeqCst) {
            return;
        }
        let writer = Writer {
            activity: self.clone(),
            store: store.clone(),
            is_the_one: true,
        };
        tokio::spawn(writer.run());
    }
}

impl Shared {
    fn is_to_tell(&self) -> bool {
        self.told_at()
            .is_none_or(|told_at| told_at.elapsed() >= TELL_INTERVAL)
    }

    fn told_at(&self) -> MutexGuard<'_, Option<Instant>> {
        self.told_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The only task that writes the numbers of a layer.
struct Writer {
    activity: Activity,
    store: Store,
    is_the_one: bool,
}

impl Writer {
    async fn run(mut self) {
        let mut has_warned = false;
        loop {
            tokio::time::sleep(INTERVAL).await;
            if self.has_ended() {
                return;
            }
            let Err(error) = self.activity.write(&self.store).await else {
                has_warned = false;
                continue;
            };
            if self.store.pool().is_closed() {
                return;
            }
            if !std::mem::replace(&mut has_warned, true) {
                tracing::warn!(
                    endpoint = &*self.activity.0.endpoint,
                    %error,
                    "could not write the activity of a webhook endpoint; it is tried again"
                );
            }
        }
    }

    /// Ends if there is nothing to write, unless something is counted at the same moment.
    fn has_ended(&mut self) -> bool {
        let Shared {
            numbers,
            has_writer,
            ..
        } = &*self.activity.0;
        if !numbers.is_empty() {
            return false;
        }
        has_writer.store(false, Ordering::SeqCst);
        self.is_the_one = !numbers.is_empty() && !has_writer.swap(true, Ordering::SeqCst);
        !self.is_the_one
    }
}

/// Also if its runtime shuts down.
impl Drop for Writer {
    fn drop(&mut self) {
        if self.is_the_one {
            self.activity.0.has_writer.store(false, Ordering::SeqCst);
        }
    }
}
