//! How pages read the database: few at once, for a bounded time, and never write.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use sqlx::{PgConnection, PgPool, Postgres, Transaction};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::PageError;

/// How many pages read at the same time, whatever is reloaded how often.
const AT_ONCE: usize = 2;

/// For a connection, and for a place among those that read.
const WAIT: Duration = Duration::from_secs(5);

/// A page that needs a statement longer than this is not answered.
const STATEMENT_TIMEOUT: &str = "5s";

/// Each statement is planned for its values: a filter that is not given must not cost an index. And it
/// is not compiled, which would take longer than all else where the planner expects many rows.
const SET_UP: &str = "
    select
        set_config('statement_timeout', $1, true),
        set_config('plan_cache_mode', 'force_custom_plan', true),
        set_config('jit', 'off', true)
";

#[derive(Clone, Debug)]
pub(super) struct Database {
    pub(super) pool: PgPool,
    readers: Arc<Semaphore>,
}

impl Database {
    pub(super) fn new(pool: PgPool) -> Self {
        Self {
            pool,
            readers: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }

    /// A transaction in which nothing can be written.
    pub(super) async fn read(&self) -> Result<Reading, PageError> {
        match tokio::time::timeout(WAIT, self.begin()).await {
            Ok(reading) => Ok(reading?),
            Err(_) => Err(PageError::timed_out()),
        }
    }

    async fn begin(&self) -> sqlx::Result<Reading> {
        // The semaphore is never closed.
        let permit = self.readers.clone().acquire_owned().await.ok();
        let tx = self
            .pool
            .begin_with("begin isolation level repeatable read read only")
            .await?;
        let mut reading = Reading {
            tx,
            _permit: permit,
        };
        sqlx::query(SET_UP)
            .bind(STATEMENT_TIMEOUT)
            .execute(&mut *reading)
            .await?;
        Ok(reading)
    }
}

/// A read-only transaction.
pub(super) struct Reading {
    tx: Transaction<'static, Postgres>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Reading {
    /// Sets the longest time of a statement.
    pub(super) async fn limit_statements(&mut self, timeout: &str) -> sqlx::Result<()> {
        sqlx::query("select set_config('statement_timeout', $1, true)")
            .bind(timeout)
            .execute(&mut *self.tx)
            .await?;
        Ok(())
    }

    pub(super) async fn end(self) -> sqlx::Result<()> {
        self.tx.commit().await
    }
}

impl Deref for Reading {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.tx
    }
}

impl DerefMut for Reading {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.tx
    }
}
