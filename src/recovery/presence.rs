//! Which endpoints a process recovers, and which none does.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::Instant;

use super::problems::{OnChange, tell_changes};
use super::shared::Shared;
use crate::metrics;
use crate::stop_signal::Stop;
use crate::transaction::DatabaseError;

const INTERVAL: Duration = Duration::from_secs(30);

/// After this many seconds without a word, an endpoint counts as recovered by no process.
pub(crate) const ABSENT_AFTER: f64 = 120.0;

/// How long a process that has kept its first delivery waits for another one to recover it.
const PATIENCE: Duration = Duration::from_secs(5);

/// The interval of the search for deliveries that no process recovers. Their endpoint was renamed, its layer keeps
/// nothing any more, or another version of this crate has kept them.
const LOOK_INTERVAL: Duration = Duration::from_secs(60);

/// How often it is warned of those that were found before.
const REMIND_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// The first search waits, since a rolling deploy may start the first process of an endpoint later.
const FIRST_LOOK: Duration = Duration::from_secs(5);

/// Deliveries are counted up to this number, so that the count is bounded.
const MAX_COUNT: i64 = 10_000;

/// Says every half a minute what this process recovers, until recovery is asked to stop.
pub(super) async fn tell(shared: Arc<Shared>, on_change: Option<OnChange>, mut stop: Stop) {
    let mut look_at = Instant::now() + FIRST_LOOK;
    let mut unserved = Unserved::new();
    loop {
        let endpoints = shared.endpoints.all();
        let names: Vec<&str> = endpoints.iter().map(|served| &*served.endpoint).collect();
        if !names.is_empty()
            && let Err(error) = shared.store.serve(&names).await
        {
            tracing::debug!(%error, "webhook recovery could not say what it serves");
        }
        if cfg!(feature = "metrics") && !names.is_empty() {
            count_failing(&shared, &names).await;
        }
        if !names.is_empty()
            && let Err(error) = tell_changes(&shared.store, &names, on_change.as_ref()).await
        {
            tracing::debug!(%error, "could not look for problems of webhook endpoints");
        }
        if Instant::now() >= look_at {
            look_at = Instant::now() + LOOK_INTERVAL;
            if let Err(error) = warn_of_unserved(&shared, &names, &mut unserved).await {
                tracing::debug!(%error, "could not look for deliveries that no process recovers");
            }
        }
        let wait = INTERVAL.min(look_at.saturating_duration_since(Instant::now()));
        if stop.or(tokio::time::sleep(wait)).await.is_none() {
            return;
        }
    }
}

/// Counts what has failed and waits, for the metrics.
async fn count_failing(shared: &Shared, endpoints: &[&str]) {
    match shared.store.failing(endpoints, MAX_COUNT).await {
        Ok(failing) => {
            for (endpoint, state, count) in failing {
                metrics::failing(endpoint, state, count);
            }
        }
        Err(error) => tracing::debug!(%error, "could not count failing webhook deliveries"),
    }
}

/// The endpoints with deliveries that no process recovers, and when it was last warned of them.
type Unserved = HashMap<String, Instant>;

const NO_LAYER: &str = "deploy the layer of this endpoint again, or discard them";
const OTHER_FORMAT: &str = "another version of idempotent-webhook has kept them; run that version";

/// Warns of deliveries that are due and that no process recovers, of others than `served` or in a format that this
/// process does not read.
async fn warn_of_unserved(
    shared: &Shared,
    served: &[&str],
    known: &mut Unserved,
) -> Result<(), DatabaseError> {
    let unserved = shared.store.unserved(ABSENT_AFTER, MAX_COUNT).await?;
    let unread = shared.store.other_formats(served, MAX_COUNT).await?;
    known.retain(|known, _| {
        let is_there = unserved
            .iter()
            .chain(&unread)
            .any(|(endpoint, _)| endpoint == known);
        if !is_there {
            metrics::unserved(known, 0);
        }
        is_there
    });
    let unserved = unserved.iter().map(|found| (found, NO_LAYER));
    for ((endpoint, due), reason) in
        unserved.chain(unread.iter().map(|found| (found, OTHER_FORMAT)))
    {
        metrics::unserved(endpoint, *due);
        if known
            .get(endpoint)
            .is_none_or(|at| at.elapsed() > REMIND_INTERVAL)
        {
            known.insert(endpoint.clone(), Instant::now());
            tracing::warn!(
                endpoint,
                due,
                "webhook deliveries are due, but no process runs them: {reason}"
            );
        }
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
    match shared.store.unserved(ABSENT_AFTER, 1).await {
        Ok(unserved) if unserved.iter().any(|(name, _)| **name == *endpoint) => tracing::warn!(
            endpoint = &*endpoint,
            "webhook deliveries are kept, but no process runs them again: spawn `Recovery` in one that \
             has this endpoint"
        ),
        Ok(_) => {}
        Err(error) => {
            tracing::debug!(%error, "could not see whether a process recovers a webhook endpoint")
        }
    }
}
