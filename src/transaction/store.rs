//! The connections that claims may hold, up to the connection limit of a layer, and the statements that begin the
//! transactions on them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, FromRow, PgPool, Postgres, SqlSafeStr};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::connection::{TxConnection, is_in_use};
use super::environment::Environment;
use super::given_up;
use super::pg_error::{DatabaseError, with_deadline};
use super::pg_time::millis;
use super::registration::PoolSettings;
use super::short_tx::{ShortTx, begin_own};

/// Begins the transaction of a claim, or fails on a connection that is already in a transaction.
///
/// In an open transaction, Postgres only warns about a plain `begin`, and the commit would include what that
/// transaction had done before. `not deferrable` is the default, but setting it is an error once a transaction has run
/// a query.
///
/// `enable_seqscan` is off because Postgres may have planned `claim.sql` while nothing was kept: with the setting on,
/// that plan would read all kept rows for each claim. `claim.sql` restores the handler's own setting.
pub(super) const BEGIN_CLAIM: &str = "begin not deferrable; set local enable_seqscan = off";

/// Begins the transaction of a rehearsal. Later transactions of the session are read-only, no matter how the handler
/// ends this one. At the end of the rehearsal, the session is closed. The statements are one message, so that PgBouncer
/// runs them in one session.
///
/// Within one message, a `set` before a `begin` would be rolled back together with the transaction. So the `set` is
/// committed first.
const BEGIN_REHEARSAL: &str = "
    begin not deferrable;
    set default_transaction_read_only = on;
    commit;
    begin read write not deferrable
";

/// How many connections in total a step tries if a failure may be due to the connection.
pub(super) const MAX_CONNECTIONS: usize = 2;

/// The database in which deliveries are claimed, with the settings for it. Clones share the connection limit and the
/// registration.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pool: PgPool,
    /// The time limit of each step. The steps are to begin, to claim, to commit and to roll back.
    pub(crate) timeout: Duration,
    pub(super) redelivery_window: Duration,
    limit: Limit,
    pub(super) registration: Arc<Mutex<Option<Registration>>>,
    /// The environment of the layer's recovery. A layer without a recovery has no environment.
    pub(super) environment: Environment,
}

/// How many connections claims may hold at once. Clones share the limit.
#[derive(Clone, Debug)]
struct Limit {
    connections: usize,
    permits: Arc<Semaphore>,
}

impl Limit {
    fn new(connections: usize) -> Self {
        let connections = connections.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            connections,
            permits: Arc::new(Semaphore::new(connections)),
        }
    }

    /// Leaves a fifth of the pool, and at least one connection, to handlers that take a second connection in addition
    /// to the connection of their claim.
    fn of_pool(pool: &PgPool) -> Self {
        let connections = usize::try_from(pool.options().get_max_connections());
        let connections = connections.unwrap_or(usize::MAX);
        Self::new(connections.saturating_sub((connections / 5).max(1)))
    }

    /// Fails if connections that the crate gave up use the whole limit: no connection becomes free until Postgres has
    /// answered on one of them.
    fn refuse_at_once(&self, pool: &PgPool) -> Result<(), DatabaseError> {
        let given_up = given_up::of_limit(pool, &self.permits);
        match given_up >= self.connections {
            true => Err(DatabaseError::GivenUp(given_up)),
            false => Ok(()),
        }
    }
}

/// This process's registration of its redelivery window.
#[derive(Debug)]
pub(super) struct Registration {
    pub(super) registered_at: Instant,
    pub(super) settings: PoolSettings,
}

impl Store {
    pub(crate) fn new(pool: PgPool, timeout: Duration, redelivery_window: Duration) -> Self {
        Self {
            limit: Limit::of_pool(&pool),
            pool,
            timeout,
            redelivery_window,
            registration: Arc::default(),
            environment: Environment::default(),
        }
    }

    pub(crate) fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Limits how many connections claims hold at once.
    pub(crate) fn limit_connections(&mut self, connections: usize) {
        self.limit = Limit::new(connections);
    }

    /// Makes both stores share the connection limit of `other`.
    pub(crate) fn share_connections(&mut self, other: &Self) {
        self.limit = other.limit.clone();
    }

    /// Runs a statement in a short transaction of its own, see [`run_all`](Self::run_all).
    pub(crate) async fn run<'q>(
        &self,
        statement: impl Fn() -> Query<'q, Postgres, PgArguments>,
    ) -> Result<Vec<PgRow>, DatabaseError> {
        self.run_all(|| [statement()]).await
    }

    /// Like [`run`](Self::run), for a statement whose rows are read.
    pub(crate) async fn read<'q, T>(
        &self,
        statement: impl Fn() -> Query<'q, Postgres, PgArguments>,
    ) -> Result<Vec<T>, DatabaseError>
    where
        T: for<'r> FromRow<'r, PgRow>,
    {
        let rows = self.run(statement).await?;
        let read = rows.iter().map(|row| T::from_row(row));
        Ok(read.collect::<sqlx::Result<_>>()?)
    }

    /// Like [`read`](Self::read), for a statement that returns one row.
    pub(crate) async fn read_one<'q, T>(
        &self,
        statement: impl Fn() -> Query<'q, Postgres, PgArguments>,
    ) -> Result<T, DatabaseError>
    where
        T: for<'r> FromRow<'r, PgRow>,
    {
        let row = self.read(statement).await?.pop();
        row.ok_or_else(|| sqlx::Error::RowNotFound.into())
    }

    /// Runs statements in one short transaction, separate from a delivery's. Returns the rows of the last statement.
    ///
    /// It tries again if a statement fails because the connection was lost or was left in a bad state. It does not try
    /// again after the commit was sent, because the statements could take effect twice.
    pub(crate) async fn run_all<'q, I>(
        &self,
        statements: impl Fn() -> I,
    ) -> Result<Vec<PgRow>, DatabaseError>
    where
        I: IntoIterator<Item = Query<'q, Postgres, PgArguments>>,
    {
        let deadline = self.deadline();
        let mut connections = 1;
        loop {
            let mut tx = self.begin_short_until(deadline).await?;
            let rows = async {
                let mut rows = Vec::new();
                for statement in statements() {
                    rows = statement.fetch_all(&mut *tx).await?;
                }
                Ok(rows)
            };
            match with_deadline(deadline, rows).await {
                Ok(rows) => {
                    with_deadline(deadline, tx.commit()).await?;
                    return Ok(rows);
                }
                Err(error)
                    if connections < MAX_CONNECTIONS
                        && error.may_be_the_connection()
                        && !error.is_wait_over() =>
                {
                    connections += 1;
                    tracing::debug!(%error, "trying another connection");
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Begins a short transaction.
    pub(crate) async fn begin_short(&self) -> Result<ShortTx, DatabaseError> {
        self.begin_short_until(self.deadline()).await
    }

    async fn begin_short_until(&self, deadline: Instant) -> Result<ShortTx, DatabaseError> {
        // A short transaction does not count against the connection limit, so it does not wait for handlers.
        let begin = AssertSqlSafe(self.short_begin()).into_sql_str();
        ShortTx::begin(&self.pool, begin, deadline).await
    }

    /// Commits a short transaction, and begins the next one on its connection.
    pub(crate) async fn commit_and_begin_short(&self, tx: ShortTx) -> sqlx::Result<ShortTx> {
        tx.commit_and_begin(&self.short_begin()).await
    }

    /// The statement that begins a short transaction, with its settings.
    fn short_begin(&self) -> String {
        let wait = millis(self.longest_wait());
        // A host that is lost in the middle of the transaction must not hold its locks until Postgres notices.
        let idle = self.timeout.as_millis().max(1);
        format!(
            "{}; set local lock_timeout = {wait}; \
             set local idle_in_transaction_session_timeout = {idle}",
            begin_own!()
        )
    }

    /// How long a statement waits for a lock that other sessions hold only for a moment. The wait ends before the
    /// client gives up. If it did not, the session would go on waiting although its connection is closed, and would
    /// keep all its locks.
    pub(super) fn longest_wait(&self) -> Duration {
        self.timeout / 2
    }

    /// Begins the transaction of a claim, on a connection without one.
    pub(super) async fn begin(&self) -> Result<TxConnection, DatabaseError> {
        self.begin_by(BEGIN_CLAIM).await
    }

    /// Begins the transaction of a rehearsal.
    pub(super) async fn begin_rehearsal(&self) -> Result<TxConnection, DatabaseError> {
        Ok(self.begin_by(BEGIN_REHEARSAL).await?.of_rehearsal())
    }

    async fn begin_by(&self, begin: &'static str) -> Result<TxConnection, DatabaseError> {
        let deadline = self.deadline();
        self.limit.refuse_at_once(&self.pool)?;
        let permit = self.limit.permits.clone().acquire_owned();
        let Ok(permit) = tokio::time::timeout_at(deadline, permit).await else {
            return Err(DatabaseError::LimitReached(self.limit.connections));
        };
        let begun = TxConnection::begin(&self.pool, begin.into_sql_str(), deadline);
        let connection = begun.await?;
        // The semaphore is never closed, so there is a permit.
        Ok(connection.with_permit(permit.ok()))
    }

    /// Whether all connections of the pool are in use, and no more may be opened.
    pub(crate) fn is_pool_in_use(&self) -> bool {
        is_in_use(&self.pool)
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.timeout
    }
}
