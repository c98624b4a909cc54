//! What Postgres reports, or fails to, and what that means for a delivery.

use std::fmt;
use std::time::Duration;

use sqlx::Postgres;

/// How sqlx begins and ends transactions and savepoints, without its `Transaction`.
pub(crate) type Manager = <Postgres as sqlx::Database>::TransactionManager;

const LOCK_NOT_AVAILABLE: &str = "55P03";
const SERIALIZATION_FAILURE: &str = "40001";
const DEADLOCK_DETECTED: &str = "40P01";
const IN_FAILED_TRANSACTION: &str = "25P02";
const ACTIVE_TRANSACTION: &str = "25001";
const UNDEFINED_TABLE: &str = "42P01";
const ADMIN_SHUTDOWN: &str = "57P01";
const CRASH_SHUTDOWN: &str = "57P02";

/// Why the database did not do its part. Nothing has been committed.
#[derive(Debug)]
pub(crate) enum DatabaseError {
    /// No connection, or no answer, within the time.
    TimedOut,
    Sqlx(sqlx::Error),
}

impl DatabaseError {
    fn is(&self, codes: &[&str]) -> bool {
        matches!(self, Self::Sqlx(error) if has_code(error, codes))
    }

    /// Whether a lock was waited for in vain.
    pub(crate) fn is_lock_timeout(&self) -> bool {
        self.is(&[LOCK_NOT_AVAILABLE])
    }

    /// Whether it only failed for what another transaction did at the same time.
    pub(crate) fn is_conflict(&self) -> bool {
        self.is(&[SERIALIZATION_FAILURE, DEADLOCK_DETECTED])
    }

    /// Whether an earlier statement of the transaction had failed.
    pub(crate) fn is_aborted_transaction(&self) -> bool {
        self.is(&[IN_FAILED_TRANSACTION])
    }

    pub(crate) fn is_connection_lost(&self) -> bool {
        matches!(self, Self::Sqlx(error) if is_connection_lost(error))
    }

    /// Whether the crate's tables are missing.
    pub(crate) fn is_not_migrated(&self) -> bool {
        self.is(&[UNDEFINED_TABLE])
    }
}

impl fmt::Display for DatabaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut => f.write_str("Postgres did not answer in time"),
            Self::Sqlx(error) => error.fmt(f),
        }
    }
}

impl From<sqlx::Error> for DatabaseError {
    fn from(error: sqlx::Error) -> Self {
        Self::Sqlx(error)
    }
}

fn has_code(error: &sqlx::Error, codes: &[&str]) -> bool {
    error
        .as_database_error()
        .and_then(|error| error.code())
        .is_some_and(|code| codes.contains(&&*code))
}

/// Whether another connection of the pool may do better: this one is lost, or somebody has
/// left a transaction open on it.
pub(crate) fn is_unusable(error: &sqlx::Error) -> bool {
    is_connection_lost(error)
        || has_code(error, &[ACTIVE_TRANSACTION, IN_FAILED_TRANSACTION])
        || matches!(
            error,
            sqlx::Error::BeginFailed | sqlx::Error::InvalidSavePointStatement
        )
}

fn is_connection_lost(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Io(_) | sqlx::Error::Protocol(_))
        || has_code(error, &[ADMIN_SHUTDOWN, CRASH_SHUTDOWN])
}

/// Waits for at most so long.
pub(crate) async fn within<T>(
    time: Duration,
    work: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, DatabaseError> {
    match tokio::time::timeout(time, work).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(DatabaseError::TimedOut),
    }
}
