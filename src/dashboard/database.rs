//! Limits the dashboard's use of the database: few connections at once, each for a limited time.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use sqlx::{PgConnection, PgPool, SqlSafeStr};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::error::PageError;
use crate::transaction::{DatabaseError, ShortTx};

/// How many connections pages and actions together use at the same time, however often pages are reloaded.
const AT_ONCE: usize = 2;

/// The longest wait for a place (a permit to use a connection), and also the longest wait for the connection itself.
const WAIT: Duration = Duration::from_secs(5);

/// A page whose statement takes longer than this fails.
const STATEMENT_TIMEOUT: &str = "5s";

const BEGIN_READ_ONLY: &str = "begin isolation level repeatable read read only not deferrable";

/// Settings for each statement, which is meant to find its few rows through an index, in the order of that index. Other
/// kinds of scan are off: if the planner expected many rows for an endpoint that has none, it would read a whole table.
/// Postgres makes a plan for the actual values, because a plan for all values could not use an index if the values of
/// some filters are absent. JIT is off, because compiling would take longer than everything else.
const SET_UP: &str = "
    select
        set_config('statement_timeout', $1, true),
        set_config('plan_cache_mode', 'force_custom_plan', true),
        set_config('enable_seqscan', 'off', true),
        set_config('enable_bitmapscan', 'off', true),
        set_config('jit', 'off', true)
";

#[derive(Clone, Debug)]
pub(super) struct Database {
    pub(super) pool: PgPool,
    places: Arc<Semaphore>,
    /// Allows background actions to hold one connection at a time, so that another one is left for pages.
    background: Arc<Semaphore>,
}

impl Database {
    pub(super) fn new(pool: PgPool) -> Self {
        Self {
            pool,
            places: Arc::new(Semaphore::new(AT_ONCE)),
            background: Arc::new(Semaphore::new(1)),
        }
    }

    /// Waits for a place: a permit to use one of the few connections. A request that is dropped while it waits costs
    /// nothing. The page holds its place until it is complete, because Postgres continues a statement even if the
    /// reader has left.
    pub(super) async fn place(&self) -> Result<Place, PageError> {
        let place = self.places.clone().acquire_owned();
        match tokio::time::timeout(WAIT, place).await {
            // The semaphore is never closed.
            Ok(place) => Ok(Place(place.ok(), None)),
            Err(_) => Err(PageError::timed_out()),
        }
    }

    /// Waits for a place for a transaction of a background action. Only one such transaction runs at a time.
    pub(super) async fn place_in_background(&self) -> Place {
        let turn = self.background.clone().acquire_owned().await.ok();
        Place(self.places.clone().acquire_owned().await.ok(), turn)
    }

    /// Begins a read-only transaction.
    pub(super) async fn read(&self) -> Result<Reading, PageError> {
        let begin = BEGIN_READ_ONLY.into_sql_str();
        let mut tx = match ShortTx::begin(&self.pool, begin, Instant::now() + WAIT).await {
            Err(DatabaseError::TimedOut) => return Err(PageError::timed_out()),
            begun => begun.map_err(sqlx::Error::from)?,
        };
        sqlx::query(SET_UP)
            .bind(STATEMENT_TIMEOUT)
            .execute(&mut *tx)
            .await?;
        Ok(Reading(tx))
    }
}

/// A permit to use one of the dashboard's few connections.
#[expect(dead_code, reason = "the permits are held")]
pub(super) struct Place(Option<OwnedSemaphorePermit>, Option<OwnedSemaphorePermit>);

/// A read-only transaction. If it is dropped without [`end`](Self::end), its connection is closed.
pub(super) struct Reading(ShortTx);

impl Reading {
    /// Sets the longest time that a statement may take.
    pub(super) async fn limit_statements(&mut self, timeout: &str) -> sqlx::Result<()> {
        sqlx::query("select set_config('statement_timeout', $1, true)")
            .bind(timeout)
            .execute(&mut *self.0)
            .await?;
        Ok(())
    }

    pub(super) fn end(self) {
        self.0.end();
    }
}

impl Deref for Reading {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.0
    }
}

impl DerefMut for Reading {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.0
    }
}
