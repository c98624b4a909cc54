//! The connections of the pool, with a transaction begun.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{PgConnection, PgPool, Postgres, SqlSafeStr};
use sqlx_core::transaction::TransactionManager;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::commit::COMMIT;
use super::connection::TxConnection;
use super::pg_error::{DatabaseError, Manager, is_unusable, may_be_the_connection, with_timeout};
use super::registration::PoolSettings;

/// Begins a transaction, or fails on a connection that is already in one.
///
/// In an open transaction Postgres only warns about a plain `begin`, and the commit would include
/// the work of others. `not deferrable` is the default, but setting it is an error once the
/// transaction has run a query.
pub(super) const BEGIN: &str = "begin not deferrable";

/// Likewise. At a higher level, concurrent changes of one row would fail.
const BEGIN_READ_COMMITTED: &str = "begin isolation level read committed not deferrable";

/// On how many connections a step is tried that may have failed because of the connection.
pub(super) const MAX_CONNECTIONS: usize = 2;

/// Where deliveries are claimed. Clones share the connection limit and the registration.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pool: PgPool,
    /// For each step: to begin, to claim, to commit, to roll back.
    pub(crate) timeout: Duration,
    pub(super) redelivery_window: Duration,
    permits: Option<Arc<Semaphore>>,
    pub(super) registration: Arc<Mutex<Option<Registration>>>,
}

/// This process's registration of its window.
#[derive(Debug)]
pub(super) struct Registration {
    pub(super) registered_at: Instant,
    pub(super) settings: PoolSettings,
}

impl Store {
    pub(crate) fn new(pool: PgPool, timeout: Duration, redelivery_window: Duration) -> Self {
        Self {
            pool,
            timeout,
            redelivery_window,
            permits: None,
            registration: Arc::default(),
        }
    }

    pub(crate) fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Holds at most this many connections at once.
    pub(crate) fn limit_connections(&mut self, connections: usize) {
        let permits = connections.clamp(1, Semaphore::MAX_PERMITS);
        self.permits = Some(Arc::new(Semaphore::new(permits)));
    }

    /// Runs a statement in a short transaction of its own, apart from that of a delivery.
    pub(crate) async fn run(
        &self,
        statement: Query<'_, Postgres, PgArguments>,
    ) -> Result<Vec<PgRow>, DatabaseError> {
        with_timeout(self.timeout, async {
            let mut tx = self.begin_short().await?;
            let rows = statement.fetch_all(tx.connection()).await?;
            tx.commit().await?;
            Ok(rows)
        })
        .await
    }

    /// The same, and once more if the connection was lost, or was left in a state in which the statement
    /// fails. Not after the commit was sent, or the statement could have its effect twice.
    pub(crate) async fn run_on_any<'q>(
        &self,
        statement: impl Fn() -> Query<'q, Postgres, PgArguments>,
    ) -> Result<Vec<PgRow>, DatabaseError> {
        with_timeout(self.timeout, async {
            let mut connections = 1;
            loop {
                let mut tx = self.begin_short().await?;
                match statement().fetch_all(tx.connection()).await {
                    Ok(rows) => {
                        tx.commit().await?;
                        return Ok(rows);
                    }
                    Err(error)
                        if connections < MAX_CONNECTIONS && may_be_the_connection(&error) =>
                    {
                        connections += 1;
                        tracing::debug!(%error, "trying another connection");
                    }
                    Err(error) => return Err(error),
                }
            }
        })
        .await
    }

    /// Begins a short transaction. It has no time limit of its own.
    pub(crate) async fn begin_short(&self) -> sqlx::Result<ShortTx> {
        // Not limited, so that it does not wait for handlers.
        Ok(ShortTx(self.begin_on_any(BEGIN_READ_COMMITTED).await?))
    }

    /// Begins a transaction on a connection that is in none.
    pub(super) async fn begin(&self) -> Result<TxConnection, DatabaseError> {
        with_timeout(self.timeout, self.begin_unbounded(BEGIN)).await
    }

    async fn begin_unbounded(&self, begin: &'static str) -> sqlx::Result<TxConnection> {
        let permit = match &self.permits {
            None => None,
            // The semaphore is never closed, so this never fails.
            Some(permits) => permits.clone().acquire_owned().await.ok(),
        };
        Ok(self.begin_on_any(begin).await?.with_permit(permit))
    }

    async fn begin_on_any(&self, begin: &'static str) -> sqlx::Result<TxConnection> {
        let mut connections_left = self.pool.options().get_max_connections();
        loop {
            // Boxed because it is by far the largest future of a request.
            let connection = Box::pin(self.pool.acquire()).await?;
            let mut connection = TxConnection::new(connection);
            match Manager::begin(&mut connection, Some(begin.into_sql_str())).await {
                Ok(()) => return Ok(connection),
                Err(error) if connections_left > 0 && is_unusable(&error) => {
                    connections_left -= 1;
                    tracing::debug!(%error, "closing an unusable connection of the pool");
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// A short transaction of the crate's own statements. Dropped, it is rolled back, and the connection
/// is closed.
pub(crate) struct ShortTx(TxConnection);

impl ShortTx {
    pub(crate) fn connection(&mut self) -> &mut PgConnection {
        &mut self.0
    }

    pub(crate) async fn commit(self) -> sqlx::Result<()> {
        self.commit_and_begin().await?.end();
        Ok(())
    }

    /// Commits, and begins the next one on the same connection.
    pub(crate) async fn commit_and_begin(mut self) -> sqlx::Result<Self> {
        sqlx::raw_sql(COMMIT).execute(&mut *self.0).await?;
        Ok(self)
    }

    /// Ends a transaction in which nothing was done. That is sent while the connection returns to the
    /// pool.
    pub(crate) fn end(mut self) {
        Manager::start_rollback(&mut self.0);
        self.0.release();
    }
}
