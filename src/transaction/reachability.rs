//! Why Postgres cannot be reached. The pool does not report the reason: it assumes that a server that refuses a
//! connection is starting, and tries again until the time is over. A *look* finds the reason by opening one connection
//! outside the pool.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::{ConnectOptions, Connection, PgPool};
use tokio::time::Instant;

use super::database_name::DatabaseName;
use super::pg_error::DatabaseError;
use crate::tasks_and_errors::error_chain::ErrorChain;
use crate::tasks_and_errors::sqlx_error::is_full;

/// How long the result of a look is reused, so that waiting deliveries do not all open connections at once.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// How long a look may take.
const LOOK_TIMEOUT: Duration = Duration::from_secs(5);

/// The databases to which connecting takes long. This is a static because the pools of a process may share nothing
/// else.
static SLOW: Mutex<Vec<Slow>> = Mutex::new(Vec::new());

/// Whether `SLOW` contains a database. If it is empty, a delivery does not lock it.
static IS_ONE_SLOW: AtomicBool = AtomicBool::new(false);

#[derive(Debug)]
struct Slow {
    database: DatabaseName,
    looked_at: Option<Instant>,
    /// Why the last look failed.
    cause: Option<String>,
    /// Whether a transaction could not begin because there was no connection.
    is_away: bool,
}

/// Opens one connection outside the pool, in a task, unless the last look was less than [`LOOK_INTERVAL`] ago.
pub(super) fn look(pool: &PgPool) {
    let options = pool.connect_options();
    let database = DatabaseName::of(&options);
    let is_news = with(&database, |slow| {
        let is_news = slow
            .looked_at
            .is_none_or(|at| at.elapsed() >= LOOK_INTERVAL);
        if is_news {
            slow.looked_at = Some(Instant::now());
        }
        is_news
    });
    if !is_news {
        return;
    }
    tokio::spawn(async move {
        let cause = match tokio::time::timeout(LOOK_TIMEOUT, options.connect()).await {
            Ok(Ok(connection)) => {
                let _ = tokio::time::timeout(LOOK_TIMEOUT, connection.close()).await;
                None
            }
            Ok(Err(error)) => Some(cause(&error, options.get_host(), options.get_port())),
            // The waiting deliveries report a timeout themselves.
            Err(_) => None,
        };
        if let Some(slow) = lock().iter_mut().find(|slow| slow.database == database) {
            slow.cause = cause;
        }
    });
}

/// Notes that a transaction got no connection. Returns the reason, if it is known.
pub(super) fn is_away(pool: &PgPool) -> Option<DatabaseError> {
    let database = DatabaseName::of(&pool.connect_options());
    let cause = with(&database, |slow| {
        slow.is_away = true;
        slow.cause.clone()
    });
    cause.map(DatabaseError::Unreachable)
}

/// Notes that a transaction got a connection.
pub(super) fn is_there(pool: &PgPool) {
    if !IS_ONE_SLOW.load(Ordering::Relaxed) {
        return;
    }
    let database = DatabaseName::of(&pool.connect_options());
    let mut all = lock();
    let was_away = all
        .iter()
        .any(|slow| slow.database == database && slow.is_away);
    all.retain(|slow| slow.database != database);
    IS_ONE_SLOW.store(!all.is_empty(), Ordering::Relaxed);
    drop(all);
    if was_away {
        tracing::info!("Postgres can be reached again");
    }
}

/// Calls `work` with what is known about a database.
fn with<T>(database: &DatabaseName, work: impl FnOnce(&mut Slow) -> T) -> T {
    let mut all = lock();
    IS_ONE_SLOW.store(true, Ordering::Relaxed);
    if let Some(slow) = all.iter_mut().find(|slow| slow.database == *database) {
        return work(slow);
    }
    let mut slow = Slow {
        database: database.clone(),
        looked_at: None,
        cause: None,
        is_away: false,
    };
    let done = work(&mut slow);
    all.push(slow);
    done
}

fn lock() -> MutexGuard<'static, Vec<Slow>> {
    // Nothing panics while it holds the lock.
    SLOW.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The text for the operator. It contains no password.
fn cause(error: &sqlx::Error, host: &str, port: u16) -> String {
    let text = ErrorChain(error);
    match error {
        sqlx::Error::Io(io) if io.kind() == std::io::ErrorKind::ConnectionRefused => {
            format!("nothing listens at {host}:{port}: {text}")
        }
        error if is_full(error) => format!(
            "{text}: the pools of all processes together must fit into the limits of Postgres and of the role"
        ),
        _ => text.to_string(),
    }
}
