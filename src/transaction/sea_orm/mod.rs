//! The transaction of a delivery as a SeaORM connection.

mod savepoint;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sea_orm::entity::prelude::async_trait::async_trait;
use sea_orm::{
    AccessMode, ConnectionTrait, DbBackend, DbErr, ExecResult, IsolationLevel, QueryResult,
    RuntimeErr, Statement, TransactionError, TransactionOptions, TransactionTrait, Values,
};
use sea_query_sqlx::SqlxValues;
use sqlx::postgres::Postgres;
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, PgConnection};
use tokio::sync::Mutex;

use super::dedupe_tx::DedupeTx;
use super::savepoint::{CLAIM_DEPTH, Savepoint, intact};
pub use savepoint::SeaOrmSavepoint;

/// A [`DedupeTx`] or a [`Savepoint`] as a SeaORM 2 connection, see [`DedupeTx::sea_orm`].
///
/// It implements [`ConnectionTrait`], which `insert`, `one`, `exec` and the other methods of entities take. A function
/// that is also called outside handlers should take `&impl ConnectionTrait`. It also implements [`TransactionTrait`]:
/// `begin` and `transaction` make a savepoint, a [`SeaOrmSavepoint`].
///
/// It has no `commit` and no `rollback`: as always, the status of the handler's response decides.
///
/// # Differences from SeaORM's own transaction
///
/// - While a savepoint is open, statements must run through it. A statement through its parent panics before anything
///   is sent. A second savepoint of the same parent panics, too.
/// - A savepoint has neither an isolation level nor an access mode. A `begin` that asks for one is
///   [refused](DbErr::BackendNotSupported), and nothing is sent.
/// - There is no `StreamTrait`, and no callback for metrics. `ConnectOptions` does not apply, except to the pool that
///   the layer got from SeaORM.
/// - A function that takes `&DatabaseConnection` or `&DatabaseTransaction` cannot be called. Change
///   its parameter to `&impl ConnectionTrait`, or to `&impl TransactionTrait` if it begins
///   transactions, as the methods of an `ActiveModelEx` do.
pub struct SeaOrmTx<'t> {
    /// Shared with the savepoints, because SeaORM does not let them borrow from this value.
    session: Arc<Mutex<Session<'t>>>,
    /// sqlx's transaction depth at which this connection is used.
    depth: usize,
}

struct Session<'t> {
    connection: &'t mut PgConnection,
    dropped: Arc<AtomicBool>,
    /// Whether the last statement succeeded. `false` if no statement has run since the last savepoint was made.
    succeeded: bool,
}

impl<'t> Session<'t> {
    /// # Panics
    ///
    /// If sqlx's transaction depth is not `depth`.
    #[track_caller]
    fn at(&mut self, depth: usize) -> &mut PgConnection {
        intact(self.connection, depth)
    }

    fn done<T>(&mut self, result: sqlx::Result<T>) -> sqlx::Result<T> {
        self.succeeded = result.is_ok();
        result
    }
}

impl DedupeTx {
    /// The transaction as a SeaORM 2 connection.
    ///
    /// What entities do through it is committed or rolled back together with the claim.
    ///
    /// ```text
    /// async fn paid(mut tx: DedupeTx, delivery: Delivery) -> Result<StatusCode, HandlerError> {
    ///     let payment = payment::ActiveModel {
    ///         event_id: Set(delivery.id().to_string()),
    ///     };
    ///     payment.insert(&tx.sea_orm()).await?;
    ///     Ok(StatusCode::OK)
    /// }
    /// ```
    ///
    /// For several statements, use `let db = tx.sea_orm()`, and pass `&db`. Concurrent statements wait for each other,
    /// because there is only one connection.
    ///
    /// **Calls through SeaORM's own `DatabaseConnection` are not part of the transaction**, and may take effect twice:
    /// `.exec(&database)`, `.one(&database)`, `database.begin()`.
    ///
    /// Return errors with `?`. A statement that fails aborts the transaction, regardless of what the handler does with
    /// the error: if the handler answers success, the layer answers 500. If the handler expects that a statement may
    /// fail, for example an insert whose [`sql_err`](DbErr::sql_err) it looks at, run the statement in a savepoint:
    ///
    /// ```text
    /// let db = tx.sea_orm();
    /// let savepoint = db.begin().await?;
    /// match payment.insert(&savepoint).await {
    ///     Ok(_) => savepoint.commit().await?,
    ///     Err(error) => match error.sql_err() {
    ///         Some(SqlErr::UniqueConstraintViolation(_)) => savepoint.rollback().await?,
    ///         _ => return Err(error.into()),
    ///     },
    /// }
    /// ```
    ///
    /// # Panics
    ///
    /// If the transaction is lost, see [what is refused](Self#what-is-refused). Each statement panics in the same case.
    #[track_caller]
    pub fn sea_orm(&mut self) -> SeaOrmTx<'_> {
        let dropped = self.dropped_savepoint();
        SeaOrmTx::new(self, CLAIM_DEPTH, dropped)
    }
}

impl Savepoint<'_> {
    /// The savepoint as a SeaORM 2 connection, see [`DedupeTx::sea_orm`].
    ///
    /// # Panics
    ///
    /// If the savepoint is lost, see [what is refused](DedupeTx#what-is-refused).
    #[track_caller]
    pub fn sea_orm(&mut self) -> SeaOrmTx<'_> {
        let (depth, dropped) = (self.depth(), self.dropped());
        SeaOrmTx::new(self, depth, dropped)
    }
}

impl<'t> SeaOrmTx<'t> {
    fn new(connection: &'t mut PgConnection, depth: usize, dropped: Arc<AtomicBool>) -> Self {
        let session = Session {
            connection,
            dropped,
            succeeded: false,
        };
        Self {
            session: Arc::new(Mutex::new(session)),
            depth,
        }
    }
}

#[async_trait]
impl ConnectionTrait for SeaOrmTx<'_> {
    fn get_database_backend(&self) -> DbBackend {
        DbBackend::Postgres
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        let mut session = self.session.lock().await;
        let executed = query(statement).execute(session.at(self.depth)).await;
        let executed = session.done(executed).map_err(exec_error)?;
        Ok(executed.into())
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        let mut session = self.session.lock().await;
        let executed = sqlx::raw_sql(AssertSqlSafe(sql))
            .execute(session.at(self.depth))
            .await;
        let executed = session.done(executed).map_err(exec_error)?;
        Ok(executed.into())
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        let mut session = self.session.lock().await;
        let row = query(statement)
            .fetch_optional(session.at(self.depth))
            .await;
        let row = session.done(row).map_err(query_error)?;
        Ok(row.map(Into::into))
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        let mut session = self.session.lock().await;
        let rows = query(statement).fetch_all(session.at(self.depth)).await;
        let rows = session.done(rows).map_err(query_error)?;
        Ok(rows.into_iter().map(Into::into).collect())
    }
}

#[async_trait]
impl<'t> TransactionTrait for SeaOrmTx<'t> {
    type Transaction = SeaOrmSavepoint<'t>;

    async fn begin(&self) -> Result<SeaOrmSavepoint<'t>, DbErr> {
        SeaOrmSavepoint::begin_in(self).await
    }

    async fn begin_with_config(
        &self,
        isolation_level: Option<IsolationLevel>,
        access_mode: Option<AccessMode>,
    ) -> Result<SeaOrmSavepoint<'t>, DbErr> {
        if isolation_level.is_some() || access_mode.is_some() {
            return Err(DbErr::BackendNotSupported {
                db: "Postgres",
                ctx: "an isolation level or an access mode of a savepoint",
            });
        }
        self.begin().await
    }

    async fn begin_with_options(
        &self,
        options: TransactionOptions,
    ) -> Result<SeaOrmSavepoint<'t>, DbErr> {
        // The third option is only for SQLite.
        self.begin_with_config(options.isolation_level, options.access_mode)
            .await
    }

    async fn transaction<F, T, E>(&self, work: F) -> Result<T, TransactionError<E>>
    where
        F: for<'c> FnOnce(&'c SeaOrmSavepoint<'t>) -> Work<'c, T, E> + Send,
        T: Send,
        E: fmt::Display + fmt::Debug + Send,
    {
        self.transaction_with_config(work, None, None).await
    }

    async fn transaction_with_config<F, T, E>(
        &self,
        work: F,
        isolation_level: Option<IsolationLevel>,
        access_mode: Option<AccessMode>,
    ) -> Result<T, TransactionError<E>>
    where
        F: for<'c> FnOnce(&'c SeaOrmSavepoint<'t>) -> Work<'c, T, E> + Send,
        T: Send,
        E: fmt::Display + fmt::Debug + Send,
    {
        let savepoint = self
            .begin_with_config(isolation_level, access_mode)
            .await
            .map_err(TransactionError::Connection)?;
        savepoint.run(work).await
    }
}

impl fmt::Debug for SeaOrmTx<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SeaOrmTx").finish_non_exhaustive()
    }
}

/// The work that SeaORM's `transaction` runs.
type Work<'c, T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'c>>;

/// The statement as a query, with its values bound.
fn query(statement: Statement) -> Query<'static, Postgres, SqlxValues> {
    let values = statement.values.unwrap_or(Values(Vec::new()));
    sqlx::query_with(AssertSqlSafe(statement.sql), SqlxValues(values))
}

// These are the variants that SeaORM's own connections return, so that `DbErr::sql_err` recognizes the errors.

fn exec_error(error: sqlx::Error) -> DbErr {
    DbErr::Exec(RuntimeErr::SqlxError(Arc::new(error)))
}

fn query_error(error: sqlx::Error) -> DbErr {
    DbErr::Query(RuntimeErr::SqlxError(Arc::new(error)))
}
