//! A short transaction for the crate's own statements.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use sqlx::{AssertSqlSafe, PgConnection, PgPool, SqlSafeStr, SqlStr};
use sqlx_core::transaction::TransactionManager;
use tokio::time::{Instant, timeout_at};

use super::connection::TxConnection;
use super::pg_error::{DatabaseError, Manager};

/// Begins a transaction for the crate's own statements.
///
/// The transaction runs at `read committed`, regardless of the default: at a higher level, concurrent changes of one
/// row would fail. `not deferrable` is set for the same reason as in [`BEGIN_CLAIM`](super::store::BEGIN_CLAIM).
///
/// Postgres keeps the plan of a prepared statement, even if the plan was made while a table was empty. For an empty
/// table, it costs nothing to read the whole table or index, or to sort. With these settings, even the first plan looks
/// up each key, and reads lists in the order of their index. If a statement can run only by reading everything or by
/// sorting, Postgres still does that. With these settings, it estimates a very high cost for such a plan, and Postgres
/// compiles plans with a high cost (JIT). The last setting switches JIT off.
macro_rules! begin_own {
    () => {
        "begin isolation level read committed not deferrable; \
         set local enable_seqscan = off; \
         set local enable_indexonlyscan = off; \
         set local enable_sort = off; \
         set local jit = off"
    };
}
pub(crate) use begin_own;

/// The longest time of a transaction that no delivery waits for. A batch of a thousand rows takes seconds. If a
/// transaction takes longer than this limit, Postgres or the network has fallen silent, and the connection is closed.
const LIMIT: Duration = Duration::from_secs(2 * 60);

/// Begins a transaction that no delivery waits for. Its waits for locks end before the client gives up. Otherwise, the
/// session would go on waiting although its connection is closed, and would keep all its locks. If the client's host is
/// lost, the session ends after the same time.
const BEGIN_LIMITED: &str = concat!(
    begin_own!(),
    "; set local lock_timeout = '1min'; set local idle_in_transaction_session_timeout = '2min'"
);

/// A short transaction for the crate's own statements. Dropping it rolls it back and closes the connection.
///
/// sqlx's own `Transaction` is not enough: if the future of sqlx 0.9.0's `Pool::begin` is dropped before Postgres has
/// answered, the connection returns to the pool within a transaction (transact-rs/sqlx #4393). What the application
/// writes on this connection next is never committed.
pub(crate) struct ShortTx(TxConnection);

impl ShortTx {
    /// Does `work` in a transaction at `read committed` that no delivery waits for. Commits, unless `work` returns an
    /// error.
    ///
    /// The time is limited: otherwise, the connection would count as in use forever if Postgres or the network fell
    /// silent.
    pub(crate) async fn run<T>(
        pool: &PgPool,
        work: impl AsyncFnOnce(&mut PgConnection) -> sqlx::Result<T>,
    ) -> sqlx::Result<T> {
        Self::run_after(BEGIN_LIMITED, pool, work).await
    }

    /// Like [`run`](Self::run), but begins with another statement.
    pub(crate) async fn run_after<T>(
        begin: &'static str,
        pool: &PgPool,
        work: impl AsyncFnOnce(&mut PgConnection) -> sqlx::Result<T>,
    ) -> sqlx::Result<T> {
        let deadline = Instant::now() + LIMIT;
        let begun = Self::begin(pool, begin.into_sql_str(), deadline);
        let mut tx = begun.await?;
        let done = timeout_at(deadline, async {
            match work(&mut tx).await {
                Ok(done) => {
                    tx.commit().await?;
                    Ok(done)
                }
                Err(error) => {
                    tx.end();
                    Err(error)
                }
            }
        });
        done.await
            .unwrap_or_else(|_| Err(DatabaseError::TimedOut.into()))
    }

    /// Begins a transaction with the statement `begin`. The caller limits the time of everything that follows.
    pub(crate) async fn begin(
        pool: &PgPool,
        begin: SqlStr,
        deadline: Instant,
    ) -> Result<Self, DatabaseError> {
        TxConnection::begin(pool, begin, deadline).await.map(Self)
    }

    pub(crate) async fn commit(mut self) -> sqlx::Result<()> {
        Manager::commit(&mut self.0).await?;
        self.0.release();
        Ok(())
    }

    /// Commits, and begins the next transaction on the same connection, in one message.
    pub(super) async fn commit_and_begin(mut self, begin: &str) -> sqlx::Result<Self> {
        let commit = AssertSqlSafe(format!("commit; {begin}"));
        sqlx::raw_sql(commit).execute(&mut *self.0).await?;
        Ok(self)
    }

    /// Ends a transaction without a commit. The rollback is sent while the connection returns to the pool.
    pub(crate) fn end(mut self) {
        Manager::start_rollback(&mut self.0);
        self.0.release();
    }
}

impl Deref for ShortTx {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.0
    }
}

impl DerefMut for ShortTx {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.0
    }
}
