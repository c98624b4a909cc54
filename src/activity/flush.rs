//! Writes the numbers and the settings of layers to Postgres. `watch.rs` calls this every five seconds.

use std::time::Duration;

use tokio::sync::MutexGuard;
use tokio::time::Instant;

use super::numbers::Numbers;
use super::{Activity, Shared, Told, renamed, statements};
use crate::transaction::{DatabaseError, Store};

/// How often the settings of a layer are written, and event types over the limit are deleted. Nothing happens while the
/// layer has no numbers to write.
const TELL_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// The numbers of a layer that are being written. If this is dropped, the layer gets back the numbers that were not
/// written. If only the answer to the commit was lost, the layer also gets its numbers back, and they are counted
/// twice. This is accepted because only operators look at these numbers, and counting them exactly once would take a
/// row for each write.
pub(super) struct Taken<'a> {
    shared: &'a Shared,
    /// When the settings were last written.
    told_at: MutexGuard<'a, Option<Instant>>,
    pub(super) numbers: Numbers,
}

impl<'a> Taken<'a> {
    /// Takes the numbers of a layer. Returns `None` if there is nothing to write. Waits for a write in progress.
    async fn from(shared: &'a Shared) -> Option<Self> {
        let told_at = shared.told_at.lock().await;
        let numbers = std::mem::take(&mut shared.state().numbers);
        (!numbers.is_empty()).then_some(Self {
            shared,
            told_at,
            numbers,
        })
    }

    pub(super) fn endpoint(&self) -> &'a str {
        &self.shared.endpoint
    }

    /// The version of the application.
    pub(super) fn version(&self) -> &'a str {
        let told = self.shared.told.get();
        told.map_or("", |told| &*told.version)
    }

    /// The settings of the layer, if it is time to report them.
    pub(super) fn told(&self) -> Option<&'a Told> {
        let is_to_tell = self.told_at.is_none_or(|at| at.elapsed() >= TELL_INTERVAL);
        self.shared.told.get().filter(|_| is_to_tell)
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let numbers = std::mem::take(&mut self.numbers);
        self.shared.state().numbers.give_back(numbers);
    }
}

impl Activity {
    /// Writes the remaining counts, or leaves them for later if that fails. Waits for a write in progress.
    pub(crate) async fn write(&self) -> Result<(), DatabaseError> {
        write(std::slice::from_ref(self), &self.store()).await
    }
}

/// Writes the counts of these layers in one transaction, or leaves them for later if that fails.
pub(super) async fn write(layers: &[Activity], store: &Store) -> Result<(), DatabaseError> {
    let mut layers: Vec<_> = layers.iter().map(|layer| &*layer.0).collect();
    // All processes, and all watches of this process, use the same order, so that they do not deadlock.
    layers.sort_by_key(|shared| (&*shared.endpoint, std::ptr::from_ref(*shared).addr()));
    let mut taken = Vec::new();
    for shared in layers {
        taken.extend(Taken::from(shared).await);
    }
    if taken.is_empty() {
        return Ok(());
    }
    let mut store = store.clone();
    // The longest timeout of these layers applies, in case a caller waits for one of these layers to be written.
    let timeouts = taken.iter().map(|each| each.shared.state().store.timeout);
    store.timeout = timeouts.max().unwrap_or(store.timeout);
    let counts = statements::Counts::of(&taken);
    let rejections = statements::Rejections::of(&taken);
    let settings = statements::Settings::of(&taken);
    // The statements are in the same order in all processes, and each statement writes its rows in the order of their
    // key.
    let all = || {
        let mut all = Vec::from_iter(counts.add());
        all.extend(rejections.add());
        for each in &taken {
            all.extend(statements::add_types(each.endpoint(), &each.numbers));
        }
        all.extend(settings.tell());
        all
    };
    let rows = store.run_all(all).await?;
    let is_told: Vec<bool> = taken.iter().map(|each| each.told().is_some()).collect();
    for (each, is_told) in taken.iter_mut().zip(&is_told) {
        each.numbers = Numbers::default();
        if *is_told {
            *each.told_at = Some(Instant::now());
        }
    }
    for (each, _) in taken.iter().zip(is_told).filter(|(_, is_told)| *is_told) {
        if renamed::is_new(&rows, each.endpoint()) {
            renamed::warn_if_renamed(each.endpoint(), &store).await?;
        }
        // This is a separate statement, because it locks rows in another order.
        store
            .run(|| statements::trim_types(each.endpoint()))
            .await?;
    }
    Ok(())
}
