//! `DatabaseError`: errors of the layer's own steps on the database, and the time limits of these steps. A step is, for
//! example, to claim or to commit. Most error codes of Postgres are in `tasks_and_errors/sqlx_error.rs`.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use sqlx::{Connection, PgConnection, Postgres};
use tokio::time::Instant;

use crate::tasks_and_errors::error_chain::ErrorChain;
use crate::tasks_and_errors::sqlx_error::{
    IN_FAILED_TRANSACTION, LOCK_NOT_AVAILABLE, QUERY_CANCELED, has_code, is_conflict,
    is_connection_lost, is_not_migrated, is_not_permitted, is_of_the_moment,
};

/// sqlx's functions behind its `Transaction`.
pub(super) type Manager = <Postgres as sqlx::Database>::TransactionManager;

const NO_ACTIVE_TRANSACTION: &str = "25P01";
/// There is no savepoint of this name.
const INVALID_SAVEPOINT: &str = "3B001";
/// The classes of errors about a value: it cannot be stored, a constraint refuses it, or it is too large for an index.
const DATA_CLASSES: [&str; 3] = ["22", "23", "54"];

/// Why a step failed. Nothing was committed, unless the step was the commit.
#[derive(Debug)]
pub(crate) enum DatabaseError {
    /// There was no answer within the timeout.
    TimedOut,
    /// There was no connection within the timeout. Contains the reason why no connection can be opened.
    Unreachable(String),
    /// There was no connection within the timeout, because all connections of the pool are in use. Contains their
    /// number.
    PoolInUse(u32),
    /// There was no connection within the timeout, because all connections that deliveries may hold are in use.
    /// Contains their number.
    LimitReached(usize),
    /// The crate has given up so many connections that no connection becomes free until Postgres answers on one of
    /// them. Contains the number of given-up connections.
    GivenUp(usize),
    Sqlx(sqlx::Error),
    /// The error of a transaction that several writes shared.
    Shared(Arc<Self>),
}

impl DatabaseError {
    fn sqlx(&self) -> Option<&sqlx::Error> {
        match self {
            Self::TimedOut
            | Self::Unreachable(_)
            | Self::PoolInUse(_)
            | Self::LimitReached(_)
            | Self::GivenUp(_) => None,
            Self::Sqlx(error) => Some(error),
            Self::Shared(error) => error.sqlx(),
        }
    }

    /// Converts the error for callers that expect sqlx's errors.
    pub(crate) fn into_sqlx(self) -> sqlx::Error {
        self.into()
    }

    fn is(&self, codes: &[&str]) -> bool {
        self.sqlx().is_some_and(|error| has_code(error, codes))
    }

    /// Whether `lock_timeout` has expired, or `statement_timeout` if that is shorter.
    pub(crate) fn is_wait_over(&self) -> bool {
        self.is(&[LOCK_NOT_AVAILABLE, QUERY_CANCELED])
    }

    pub(crate) fn is_conflict(&self) -> bool {
        self.sqlx().is_some_and(is_conflict)
    }

    /// Like the function [`is_of_the_moment`]. Also true if there was no answer.
    pub(crate) fn is_of_the_moment(&self) -> bool {
        self.sqlx().is_none_or(is_of_the_moment)
    }

    /// Whether Postgres refuses the values of the statement, regardless of the connection.
    pub(crate) fn is_about_the_data(&self) -> bool {
        self.sqlx()
            .and_then(sqlx::Error::as_database_error)
            .and_then(|error| error.code())
            .is_some_and(|code| DATA_CLASSES.iter().any(|class| code.starts_with(class)))
    }

    /// Whether another transaction may succeed at this moment. This is the case if Postgres has answered, or if the
    /// only problem is that connections are in use.
    pub(crate) fn leaves_postgres_usable(&self) -> bool {
        match self {
            Self::TimedOut | Self::Unreachable(_) | Self::GivenUp(_) => false,
            Self::PoolInUse(_) | Self::LimitReached(_) => true,
            Self::Sqlx(error) => !is_connection_lost(error) && error.as_database_error().is_some(),
            Self::Shared(error) => error.leaves_postgres_usable(),
        }
    }

    /// Whether an earlier statement of the transaction had failed.
    pub(crate) fn is_aborted_transaction(&self) -> bool {
        self.is(&[IN_FAILED_TRANSACTION])
    }

    /// Whether the transaction has no savepoint of this name, or there is no transaction.
    pub(super) fn is_of_savepoint(&self) -> bool {
        self.is(&[INVALID_SAVEPOINT, NO_ACTIVE_TRANSACTION])
    }

    /// Whether the error may be due to the connection: it is lost, or was left with other settings, with another role,
    /// or without its prepared statements.
    pub(crate) fn may_be_the_connection(&self) -> bool {
        self.sqlx().is_some_and(may_be_the_connection)
    }
}

impl fmt::Display for DatabaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut => f.write_str("Postgres did not answer in time"),
            Self::PoolInUse(connections) => write!(
                f,
                "all {connections} connections of the pool are in use: make it larger, or have \
                 deliveries hold fewer (`max_connections` of each layer, `share_connections`)"
            ),
            Self::LimitReached(connections) => write!(
                f,
                "all {connections} connections that deliveries may hold are in use \
                 (`max_connections`): their handlers are slow, or wait for each other"
            ),
            Self::GivenUp(connections) => write!(
                f,
                "Postgres still works on {connections} transactions that were given up, and no connection is left: a \
                 statement takes long or waits for a lock, the disk of Postgres does not answer, or a commit waits for \
                 a standby (see the view `pg_stat_activity`)"
            ),
            Self::Unreachable(cause) => write!(f, "Postgres cannot be reached: {cause}"),
            Self::Sqlx(error) => Explained(error).fmt(f),
            Self::Shared(error) => error.fmt(f),
        }
    }
}

/// An error of one of the crate's own statements in the form that is logged: with its causes and a hint about
/// what to do.
pub(crate) struct Explained<'a>(pub(crate) &'a sqlx::Error);

impl fmt::Display for Explained<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        ErrorChain(self.0).fmt(f)?;
        f.write_str(hint(self.0))
    }
}

/// What to do about an error of one of the crate's own statements, as text to append to the error. Empty if unknown.
pub(crate) fn hint(error: &sqlx::Error) -> &'static str {
    if is_not_migrated(error) {
        "; has `idempotent_webhook::migrate` been run?"
    } else if is_not_permitted(error) {
        "; has `grant` been run again since the last `migrate`?"
    } else {
        ""
    }
}

/// The conversion for functions whose callers expect sqlx's errors.
impl From<DatabaseError> for sqlx::Error {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::Sqlx(error) => error,
            DatabaseError::PoolInUse(_) | DatabaseError::LimitReached(_) => Self::PoolTimedOut,
            error @ DatabaseError::Shared(_) => Self::Io(io::Error::other(error.to_string())),
            error => Self::Io(io::Error::new(io::ErrorKind::TimedOut, error.to_string())),
        }
    }
}

impl From<sqlx::Error> for DatabaseError {
    fn from(error: sqlx::Error) -> Self {
        Self::Sqlx(error)
    }
}

/// See [`DatabaseError::may_be_the_connection`].
fn may_be_the_connection(error: &sqlx::Error) -> bool {
    matches!(
        error,
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::Database(_)
    )
}

/// Reads the answers to statements that were cancelled, or whose rows were not all read. This hides the error of a
/// statement that has failed. The next statement then reports that the transaction is aborted, unless a savepoint was
/// rolled back since.
pub(super) async fn read_pending(connection: &mut PgConnection) -> sqlx::Result<()> {
    loop {
        // `flush` is hidden in sqlx's docs, and exists for sqlx's pool. Only this method reads the pending answers
        // without a round trip. If no answers are pending, it does nothing.
        match Connection::flush(connection).await {
            Err(error) if is_connection_lost(&error) => return Err(error),
            Err(_) => {}
            Ok(()) => return Ok(()),
        }
    }
}

/// Limits the time of a step.
pub(crate) async fn with_timeout<T>(
    timeout: Duration,
    step: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, DatabaseError> {
    with_deadline(Instant::now() + timeout, step).await
}

/// Like [`with_timeout`], for one of several steps that share one limit.
pub(super) async fn with_deadline<T>(
    deadline: Instant,
    step: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, DatabaseError> {
    match tokio::time::timeout_at(deadline, step).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(DatabaseError::TimedOut),
    }
}
