//! Bounds the dashboard's use of the database: few connections at once, each for a limited time.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use sqlx::{PgConnection, PgPool, SqlSafeStr};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::error::PageError;
use crate::transaction::{DatabaseError, ShortTx};

/// How many connections are used at the same time, by pages and by actions, whatever is reloaded how often.
const AT_ONCE: usize = 2;

/// For a connection, and for a place.
const WAIT: Duration = Duration::from_secs(5);

/// A page whose statement takes longer than this fails.
const STATEMENT_TIMEOUT: &str = "5s";

const BEGIN_READ_ONLY: &str = "begin isolation level repeatable read read only not deferrable";

/// Postgres plans each statement for its values, so that an absent filter does not cost an index. Each finds its few
/// rows by an index, in its order. Otherwise the planner would read a whole table where it expects many rows of an
/// endpoint that has none. Nothing is compiled by JIT, which would take longer than the rest.
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
    /// For actions in the background, so that one place is left for pages.
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

    /// A place among the users of a connection. A request that is dropped while it waits for one costs nothing. The
    /// place is held until the page is made, since a statement goes on in Postgres when nobody waits for it any longer.
    pub(super) async fn place(&self) -> Result<Place, PageError> {
        let place = self.places.clone().acquire_owned();
        match tokio::time::timeout(WAIT, place).await {
            // The semaphore is never closed.
            Ok(place) => Ok(Place(place.ok(), None)),
            Err(_) => Err(PageError::timed_out()),
        }
    }

    /// The same for work in the background, one at a time.
    pub(super) async fn place_in_background(&self) -> Place {
        let turn = self.background.clone().acquire_owned().await.ok();
        Place(self.places.clone().acquire_owned().await.ok(), turn)
    }

    /// A transaction in which nothing can be written.
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

/// A place among the users of a connection.
#[expect(dead_code, reason = "the permits are held")]
pub(super) struct Place(Option<OwnedSemaphorePermit>, Option<OwnedSemaphorePermit>);

/// A read-only transaction. Without an [`end`](Self::end), its connection is closed.
pub(super) struct Reading(ShortTx);

impl Reading {
    /// Sets the longest time of a statement.
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
