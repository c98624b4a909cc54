//! The flush of a layer's activity to Postgres.

use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::{Activity, Shared, renamed, statements};
use crate::background::spawn_once;
use crate::transaction::{DatabaseError, Store};

/// How often the numbers of a layer are written.
const INTERVAL: Duration = Duration::from_secs(5);

/// How often the settings of a layer are written, while it has numbers to write.
const TELL_INTERVAL: Duration = Duration::from_secs(60 * 60);

impl Activity {
    /// Writes what is not written yet, or leaves it for later.
    pub(crate) async fn write(&self, store: &Store) -> Result<(), DatabaseError> {
        let shared = &*self.0;
        let _writing = shared.writing.lock().await;
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
        let rows = store.run_all(statements).await?;
        taken.forget();
        if told.is_some() {
            *shared.told_at() = Some(Instant::now());
            if renamed::is_new(&rows) {
                renamed::warn_if_renamed(endpoint, store).await?;
            }
        }
        Ok(())
    }

    pub(super) fn ensure_writer(&self, store: &Store) {
        let has_writer = &self.0.has_writer;
        if has_writer.load(Ordering::SeqCst) || has_writer.swap(true, Ordering::SeqCst) {
            return;
        }
        let writer = Writer {
            activity: self.clone(),
            store: store.clone(),
            is_the_one: true,
        };
        spawn_once("activity", writer.run());
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
