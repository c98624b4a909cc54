//! Errors of sqlx: what Postgres reports, and whether the statement is the cause.

use sqlx::postgres::{PgDatabaseError, PgSeverity};

pub(crate) const LOCK_NOT_AVAILABLE: &str = "55P03";
const SERIALIZATION_FAILURE: &str = "40001";
const DEADLOCK_DETECTED: &str = "40P01";
pub(crate) const IN_FAILED_TRANSACTION: &str = "25P02";
const ACTIVE_TRANSACTION: &str = "25001";
const UNDEFINED_TABLE: &str = "42P01";
pub(crate) const QUERY_CANCELED: &str = "57014";
const INSUFFICIENT_PRIVILEGE: &str = "42501";
const TOO_MANY_CONNECTIONS: &str = "53300";
const CONNECTION_EXCEPTION_CLASS: &str = "08";

/// Whether this is an error of Postgres with one of these codes.
pub(crate) fn has_code(error: &sqlx::Error, codes: &[&str]) -> bool {
    error
        .as_database_error()
        .and_then(|error| error.code())
        .is_some_and(|code| codes.contains(&&*code))
}

/// Whether the crate's tables are missing.
pub(crate) fn is_not_migrated(error: &sqlx::Error) -> bool {
    has_code(error, &[UNDEFINED_TABLE])
}

/// Whether the role lacks a right.
pub(crate) fn is_not_permitted(error: &sqlx::Error) -> bool {
    has_code(error, &[INSUFFICIENT_PRIVILEGE])
}

/// Whether Postgres, the database or the role has reached its maximum number of connections.
pub(crate) fn is_full(error: &sqlx::Error) -> bool {
    has_code(error, &[TOO_MANY_CONNECTIONS])
}

/// Whether `lock_timeout` expired.
pub(crate) fn is_lock_timeout(error: &sqlx::Error) -> bool {
    has_code(error, &[LOCK_NOT_AVAILABLE])
}

/// Whether `statement_timeout` expired, or the statement was cancelled.
#[cfg(feature = "dashboard")]
pub(crate) fn is_query_canceled(error: &sqlx::Error) -> bool {
    has_code(error, &[QUERY_CANCELED])
}

/// Whether the statement failed only because of a concurrent transaction.
pub(crate) fn is_conflict(error: &sqlx::Error) -> bool {
    has_code(error, &[SERIALIZATION_FAILURE, DEADLOCK_DETECTED])
}

/// Whether the cause is not the statement itself, but a conflict, a lock that another transaction holds, or a lost
/// connection.
pub(crate) fn is_of_the_moment(error: &sqlx::Error) -> bool {
    is_conflict(error) || is_lock_timeout(error) || is_connection_lost(error)
}

/// Whether it is worth starting over on another connection, because this connection is lost, or was left with an open
/// transaction.
pub(crate) fn is_unusable(error: &sqlx::Error) -> bool {
    is_connection_lost(error)
        || has_code(error, &[ACTIVE_TRANSACTION, IN_FAILED_TRANSACTION])
        || matches!(
            error,
            sqlx::Error::BeginFailed | sqlx::Error::InvalidSavePointStatement
        )
}

/// Whether the connection is lost.
pub(crate) fn is_connection_lost(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) => true,
        sqlx::Error::Database(error) => {
            let class = error
                .code()
                .map(|code| code.starts_with(CONNECTION_EXCEPTION_CLASS));
            class == Some(true)
                // Postgres and PgBouncer end the session with such an error: at shutdown, after a crash, or because the
                // session was idle for too long.
                || error
                    .try_downcast_ref::<PgDatabaseError>()
                    .is_some_and(|error| {
                        matches!(error.severity(), PgSeverity::Fatal | PgSeverity::Panic)
                    })
        }
        _ => false,
    }
}
