//! A short transaction of the crate's own statements.

use std::ops::{Deref, DerefMut};

use sqlx::{AssertSqlSafe, PgConnection, PgPool, SqlSafeStr};
use sqlx_core::transaction::TransactionManager;

use super::commit::COMMIT;
use super::connection::TxConnection;
use super::pg_error::Manager;

/// Begins at `read committed`, whatever the default: at a higher level, concurrent changes of one row would
/// fail. The rest is as in [`BEGIN`](super::store::BEGIN).
pub(super) const BEGIN_READ_COMMITTED: &str = "begin isolation level read committed not deferrable";

/// A short transaction of the crate's own statements. Dropped, it is rolled back, and the connection
/// is closed.
///
/// sqlx's own `Transaction` does less: a `Pool::begin` of sqlx 0.9.0 that is dropped while Postgres begins
/// returns a connection to the pool that is in a transaction (transact-rs/sqlx #4393). What the application
/// writes with it next is never committed.
pub(crate) struct ShortTx(TxConnection);

impl ShortTx {
    /// One that has begun.
    pub(super) fn of(connection: TxConnection) -> Self {
        Self(connection)
    }

    /// Begins at `read committed`. Waits for as long as the pool and Postgres let it.
    pub(crate) async fn begin(pool: &PgPool) -> sqlx::Result<Self> {
        Self::begin_with(pool, BEGIN_READ_COMMITTED).await
    }

    /// Begins with this statement.
    pub(crate) async fn begin_with(pool: &PgPool, begin: &'static str) -> sqlx::Result<Self> {
        let mut connection = TxConnection::new(pool.acquire().await?);
        Manager::begin(&mut connection, Some(begin.into_sql_str())).await?;
        Ok(Self(connection))
    }

    pub(crate) async fn commit(mut self) -> sqlx::Result<()> {
        sqlx::raw_sql(COMMIT).execute(&mut *self.0).await?;
        self.end();
        Ok(())
    }

    /// Commits, and begins the next one on the same connection with these settings, which are sent with the commit.
    pub(super) async fn commit_and_begin(mut self, settings: &str) -> sqlx::Result<Self> {
        let commit = AssertSqlSafe(format!("{COMMIT}; {settings}"));
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
