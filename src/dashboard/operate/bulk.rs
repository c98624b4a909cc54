//! Bulk actions, which change many deliveries in the background and can be cancelled. `recovery/operator/bulk.rs`
//! decides the size of the batches. If the process is killed during an action, `recorded_actions.rs` reports the action
//! as interrupted.

use std::time::Duration;

use sqlx::PgConnection;
use tokio::time::Instant;

use super::super::database::Database;
use super::super::rows::Key;
use super::action::Action;
use super::recorded_actions;
use crate::recovery::Filter;
use crate::recovery::operator::{self, Applied, BATCH, Bulk, Operation, Running, Scope};
use crate::tasks_and_errors::sqlx_error::{is_conflict, is_lock_timeout};
use crate::transaction::{Explained, RowKeys};

/// How many times a batch is repeated after deadlocks.
const MAX_CONFLICTS: usize = 10;

/// The longest pause between two batches.
const MAX_PAUSE: Duration = Duration::from_secs(1);

const FAILED: &str = "The database could not be written. The log says why.";

pub(super) const HELD: &str = "Something else has locked a delivery for too long. Try again.";

/// An action in the background. For each of its transactions, it waits for a free connection in the same queue as
/// pages.
pub(super) struct InBackground {
    pub(super) database: Database,
    pub(super) id: i64,
}

/// The deliveries that one transaction changes.
#[derive(Clone, Copy)]
enum Batch<'a> {
    /// Deliveries that match a filter.
    Chosen(&'a Bulk<'a>, &'a RowKeys),
    /// Deliveries that were selected one by one.
    Selected(&'a RowKeys),
}

impl InBackground {
    /// Changes all deliveries that match a filter. The transaction that changes a batch also counts it, so the numbers
    /// are always correct, even if the process is killed.
    pub(super) async fn run(
        self,
        action: Action,
        operation: Operation,
        endpoints: Vec<String>,
        filter: Filter,
    ) {
        let mut done = Ok(false);
        for endpoint in &endpoints {
            done = self.of_endpoint(action, operation, endpoint, &filter).await;
            if !matches!(done, Ok(false)) {
                break;
            }
        }
        self.end(done.map(|_| None)).await;
    }

    /// Changes the deliveries of one endpoint. Returns whether the action was cancelled.
    async fn of_endpoint(
        &self,
        action: Action,
        operation: Operation,
        endpoint: &str,
        filter: &Filter,
    ) -> sqlx::Result<bool> {
        let scope = Scope {
            endpoint,
            tenant: None,
        };
        let mut bulk = Bulk::new(operation, scope, filter);
        loop {
            let place = self.database.place_in_background().await;
            let batch = bulk.next(&self.database.pool).await?;
            drop(place);
            let Some(batch) = batch else {
                return Ok(false);
            };
            let batch = Batch::Chosen(&bulk, &batch);
            let (_, is_cancelled) = self.batch(endpoint, action, batch).await?;
            if is_cancelled {
                return Ok(true);
            }
        }
    }

    /// Changes a batch, and counts it in the same transaction. Also returns whether the action was cancelled.
    async fn batch(
        &self,
        endpoint: &str,
        action: Action,
        batch: Batch<'_>,
    ) -> sqlx::Result<(Applied, bool)> {
        let mut conflicts = 0;
        loop {
            let started = Instant::now();
            let place = self.database.place_in_background().await;
            let done = operator::in_transaction(&self.database.pool, async |tx| {
                let applied = match batch {
                    Batch::Chosen(bulk, keys) => bulk.apply(keys, tx).await?,
                    Batch::Selected(keys) => change(action, endpoint, keys, tx).await?,
                };
                let is_cancelled =
                    recorded_actions::add(tx, self.id, action, endpoint, &applied).await?;
                Ok((applied, is_cancelled))
            });
            let done = done.await;
            drop(place);
            // Pauses for as long as the batch took (at most `MAX_PAUSE`), so that the action uses the database only
            // half of the time.
            tokio::time::sleep(started.elapsed().min(MAX_PAUSE)).await;
            match done {
                Err(error) if is_conflict(&error) && conflicts < MAX_CONFLICTS => conflicts += 1,
                done => return done,
            }
        }
    }

    /// Changes deliveries that were selected one by one. Their keys are sorted.
    pub(super) async fn run_selected(self, action: Action, keys: Vec<Key>) {
        let unchanged = self.selected(action, &keys).await;
        let note = unchanged.map(|unchanged| {
            (unchanged > 0).then(|| {
                format!(
                    "{unchanged} of them could not be changed. The page of each shows its state."
                )
            })
        });
        self.end(note).await;
    }

    /// Changes the deliveries with these keys. Returns how many of them could not be changed.
    async fn selected(&self, action: Action, keys: &[Key]) -> sqlx::Result<usize> {
        let mut unchanged = 0;
        for of_endpoint in keys.chunk_by(|a, b| a.endpoint == b.endpoint) {
            let Some(Key { endpoint, .. }) = of_endpoint.first() else {
                continue;
            };
            for batch in of_endpoint.chunks(BATCH) {
                let keys: RowKeys = batch.iter().map(row_key).collect();
                let batch = Batch::Selected(&keys);
                let (applied, is_cancelled) = self.batch(endpoint, action, batch).await?;
                unchanged += keys.len() - applied.changed.len() - applied.running;
                if is_cancelled {
                    return Ok(unchanged);
                }
            }
        }
        Ok(unchanged)
    }

    async fn end(&self, done: sqlx::Result<Option<String>>) {
        let note = done.unwrap_or_else(|error| {
            tracing::warn!(error = %Explained(&error), id = self.id, "an action of a webhook operator failed");
            Some(
                if is_lock_timeout(&error) {
                    HELD
                } else {
                    FAILED
                }
                .to_owned(),
            )
        });
        let _place = self.database.place_in_background().await;
        let ended = recorded_actions::end(&self.database.pool, self.id, note.as_deref()).await;
        if let Err(error) = ended {
            let id = self.id;
            tracing::warn!(error = %Explained(&error), id, "could not record that an action of a webhook operator ended");
        }
    }
}

pub(super) fn row_key(key: &Key) -> (String, String) {
    (key.tenant.clone(), key.id.clone())
}

/// Changes deliveries of an endpoint.
pub(super) async fn change(
    action: Action,
    endpoint: &str,
    keys: &RowKeys,
    tx: &mut PgConnection,
) -> sqlx::Result<Applied> {
    match action.operation() {
        Some(operation) => operator::apply_to(operation, keys, endpoint, Running::IsLeft, tx).await,
        None if action == Action::Forget => {
            operator::forget_unless_archived(keys, endpoint, tx).await
        }
        None => Ok(Applied::default()),
    }
}
