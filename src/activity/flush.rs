//! The flush of a layer's activity to Postgres.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::Instant;

use super::numbers::Numbers;
use super::{Activity, Shared, renamed, statements};
use crate::background::Background;
use crate::transaction::DatabaseError;

/// How often the numbers of a layer are written.
const INTERVAL: Duration = Duration::from_secs(5);

/// How often the settings of a layer are written and its types are trimmed, while it has numbers to write.
const TELL_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// Numbers that are being written. Dropped, they are given back, also if only the answer to the commit was lost: then they are
/// counted twice. They are what an operator looks at, and to count them once would take a row for each write.
struct Taken<'a> {
    shared: &'a Shared,
    numbers: Numbers,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let numbers = std::mem::take(&mut self.numbers);
        self.shared.state().numbers.give_back(numbers);
    }
}

impl Activity {
    /// Writes what is not written yet, or leaves it for later. Waits for what is being written.
    pub(crate) async fn write(&self) -> Result<(), DatabaseError> {
        let shared = &*self.0;
        let mut told_at = shared.told_at.lock().await;
        let (store, numbers) = {
            let mut state = shared.state();
            (state.store.clone(), std::mem::take(&mut state.numbers))
        };
        let mut taken = Taken { shared, numbers };
        let (endpoint, told) = (&*shared.endpoint, shared.told.get());
        let version = told.map_or("", |told| &*told.version);
        if taken.numbers.is_empty() {
            return Ok(());
        }
        let is_to_tell = told_at.is_none_or(|at| at.elapsed() >= TELL_INTERVAL);
        let told = told.filter(|_| is_to_tell);
        // In the same order in all processes, and each in the order of its key.
        let statements = || {
            [
                statements::add_counts(endpoint, version, &taken.numbers),
                statements::add_rejections(endpoint, &taken.numbers),
                statements::add_types(endpoint, &taken.numbers),
                told.map(|told| statements::tell_settings(endpoint, told)),
            ]
            .into_iter()
            .flatten()
        };
        let rows = store.run_all(statements).await?;
        taken.numbers = Numbers::default();
        if told.is_some() {
            *told_at = Some(Instant::now());
            if renamed::is_new(&rows) {
                renamed::warn_if_renamed(endpoint, &store).await?;
            }
            // On its own, since it locks rows in another order.
            store.run(|| statements::trim_types(endpoint)).await?;
        }
        Ok(())
    }

    pub(super) fn spawn_writer(&self) -> Background {
        let shared = Arc::downgrade(&self.0);
        Background::spawn("activity", move |_| write_for(shared.clone()))
    }
}

/// Writes for as long as there is a layer, and then what it has counted last.
async fn write_for(shared: Weak<Shared>) {
    let Some(activity) = shared.upgrade().map(Activity) else {
        return;
    };
    let mut has_warned = false;
    loop {
        tokio::time::sleep(INTERVAL).await;
        let is_last = Arc::strong_count(&activity.0) == 1;
        match activity.write().await {
            Ok(()) if is_last => return,
            Ok(()) => has_warned = false,
            Err(_) if activity.0.state().store.pool().is_closed() => return,
            Err(error) if !std::mem::replace(&mut has_warned, true) => tracing::warn!(
                endpoint = &*activity.0.endpoint,
                %error,
                "could not write the activity of a webhook endpoint; it is tried again"
            ),
            Err(_) => {}
        }
    }
}
