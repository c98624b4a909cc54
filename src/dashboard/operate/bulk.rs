//! A bulk action: retries, discards, reprocesses or erases many deliveries in the background, until it is cancelled.

use std::time::Duration;

use sqlx::PgConnection;
use tokio::time::Instant;

use super::super::database::Database;
use super::super::rows::Key;
use super::parse_action::Action;
use super::recorded_actions;
use crate::recovery::Filter;
use crate::recovery::operator::{self, Batches, Change, Of};
use crate::transaction::{RowKeys, ShortTx, is_conflict, is_lock_timeout};

/// How often a batch is tried again after a deadlock.
const MAX_CONFLICTS: usize = 10;

/// The longest pause between two batches.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// How long a delivery that is running is waited for, in milliseconds. Shorter than the time after which an
/// action seems to be interrupted.
const LOCK_TIMEOUT: &str = "2000";

const SET_LOCK_TIMEOUT: &str = "select set_config('lock_timeout', $1, true)";

/// What was left out is counted up to here.
const MOST_LEFT: i64 = 1000;

const FAILED: &str = "The database could not be written. The log says why.";

/// An action in the background. It takes its turn among the pages for each of its transactions.
pub(super) struct Bulk {
    pub(super) database: Database,
    pub(super) id: i64,
}

impl Bulk {
    /// Changes all deliveries of a filter. Each batch is counted in its own transaction, so the number is
    /// true at any time, also if the process is killed.
    pub(super) async fn run(self, change: Change, endpoints: Vec<String>, filter: Filter) {
        let mut left = 0;
        let mut note = None;
        for endpoint in &endpoints {
            match self.of_endpoint(change, endpoint, &filter).await {
                Ok(Ended::WithLeft(some)) => left += some,
                Ok(Ended::Cancelled) => break,
                Err(error) => {
                    tracing::warn!(%error, id = self.id, "an action of a webhook operator failed");
                    note = Some(FAILED.to_owned());
                    break;
                }
            }
        }
        self.end(note.or_else(|| left_out(left))).await;
    }

    async fn of_endpoint(
        &self,
        change: Change,
        endpoint: &str,
        filter: &Filter,
    ) -> sqlx::Result<Ended> {
        let of = Of {
            endpoint,
            tenant: None,
        };
        let mut batches = Batches::new(change, of, filter);
        let mut conflicts = 0;
        while !batches.is_over() {
            let started = Instant::now();
            match self.batch(change, endpoint, &mut batches).await {
                Ok(true) => return Ok(Ended::Cancelled),
                Ok(false) => {}
                Err(error) if is_conflict(&error) && conflicts < MAX_CONFLICTS => conflicts += 1,
                Err(error) => return Err(error),
            }
            // For half of the time the database is left to deliveries.
            tokio::time::sleep(started.elapsed().min(MAX_PAUSE)).await;
        }
        Ok(Ended::WithLeft(self.left(change, of, filter).await?))
    }

    async fn left(&self, change: Change, of: Of<'_>, filter: &Filter) -> sqlx::Result<i64> {
        let _place = self.database.place_in_background().await;
        let mut tx = ShortTx::begin(&self.database.pool).await?;
        let left = Batches::left(change, of, filter, MOST_LEFT, &mut tx).await?;
        tx.commit().await?;
        Ok(left)
    }

    /// Returns whether the action was cancelled.
    async fn batch(
        &self,
        change: Change,
        endpoint: &str,
        batches: &mut Batches<'_>,
    ) -> sqlx::Result<bool> {
        let _place = self.database.place_in_background().await;
        let mut tx = ShortTx::begin(&self.database.pool).await?;
        let batch = batches.next(&mut tx).await?;
        let changed = &batch.changed;
        let is_cancelled =
            recorded_actions::add(&mut tx, self.id, endpoint, changed, change.makes_due()).await?;
        tx.commit().await?;
        batches.committed(&batch);
        Ok(is_cancelled)
    }

    /// Changes deliveries one by one, each in a transaction of its own.
    pub(super) async fn run_selected(self, action: Action, keys: Vec<Key>) {
        let (mut left, mut unchanged, mut note) = (0, 0, None);
        for key in &keys {
            match self.selected(action, key).await {
                Ok(One::Changed) => {}
                Ok(One::Unchanged) => unchanged += 1,
                Ok(One::Cancelled) => break,
                Ok(One::Left) => left += 1,
                Err(error) => {
                    tracing::warn!(%error, id = self.id, "an action of a webhook operator failed");
                    note = Some(FAILED.to_owned());
                    break;
                }
            }
        }
        let unchanged = (unchanged > 0).then(|| {
            format!("{unchanged} of them could not be changed: each one's page says how it is.")
        });
        self.end(note.or_else(|| left_out(left)).or(unchanged))
            .await;
    }

    async fn selected(&self, action: Action, key: &Key) -> sqlx::Result<One> {
        let _place = self.database.place_in_background().await;
        let mut tx = ShortTx::begin(&self.database.pool).await?;
        let (has_changed, one) = match change_one(&mut tx, action, key).await {
            Ok(true) => (true, One::Changed),
            Ok(false) => (false, One::Unchanged),
            Err(error) if is_lock_timeout(&error) || is_conflict(&error) => {
                // What it has done so far is undone. That it is active is still recorded.
                tx.end();
                tx = ShortTx::begin(&self.database.pool).await?;
                (false, One::Left)
            }
            Err(error) => return Err(error),
        };
        let is_cancelled = add_one(&mut tx, self.id, action, key, has_changed).await?;
        tx.commit().await?;
        Ok(if is_cancelled { One::Cancelled } else { one })
    }

    async fn end(&self, note: Option<String>) {
        let _place = self.database.place_in_background().await;
        let ended = recorded_actions::end(&self.database.pool, self.id, note.as_deref()).await;
        if let Err(error) = ended {
            let id = self.id;
            tracing::warn!(%error, id, "could not record that an action of a webhook operator ended");
        }
    }
}

/// How an action on the deliveries of an endpoint ended.
enum Ended {
    /// With so many that have an attempt under way.
    WithLeft(i64),
    Cancelled,
}

enum One {
    Changed,
    Unchanged,
    /// Somebody else holds it.
    Left,
    Cancelled,
}

fn left_out(number: i64) -> Option<String> {
    let more = if number < MOST_LEFT { "" } else { " or more" };
    (number > 0).then(|| {
        format!("{number}{more} are running, or were held by another action, and are unchanged.")
    })
}

/// Changes a delivery. Returns whether there was something to change.
pub(super) async fn change_one(
    tx: &mut PgConnection,
    action: Action,
    key: &Key,
) -> sqlx::Result<bool> {
    let of = key.of();
    sqlx::query(SET_LOCK_TIMEOUT)
        .bind(LOCK_TIMEOUT)
        .execute(&mut *tx)
        .await?;
    match action {
        // One that was processed meanwhile has nothing to run for.
        Action::Retry if operator::is_processed(tx, of, &key.id).await? => Ok(false),
        Action::Retry => operator::retry(tx, of, &key.id).await,
        Action::Discard => operator::discard(tx, of, &key.id, Some(LOCK_TIMEOUT)).await,
        Action::Reprocess => operator::reprocess(tx, of, &key.id).await,
        // One whose request is kept is processed again from that, and not forgotten with it.
        Action::Forget if operator::is_archived(tx, of, &key.id).await? => Ok(false),
        Action::Forget => operator::forget(tx, of, &key.id).await,
        Action::Erase => operator::erase(tx, of, &key.id, Some(LOCK_TIMEOUT)).await,
        Action::Pause | Action::Resume => Ok(false),
    }
}

/// Counts it, in the same transaction. Returns whether the action was cancelled.
pub(super) async fn add_one(
    tx: &mut PgConnection,
    id: i64,
    action: Action,
    key: &Key,
    has_changed: bool,
) -> sqlx::Result<bool> {
    let changed = match has_changed {
        true => RowKeys::one(&key.tenant, &key.id),
        false => RowKeys::zip(Vec::new(), Vec::new()),
    };
    let are_due = matches!(action, Action::Retry | Action::Reprocess);
    recorded_actions::add(tx, id, &key.endpoint, &changed, are_due).await
}
