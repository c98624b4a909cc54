//! Why Postgres cannot be reached. The pool does not say: it takes a refusal for a start of the server, and tries again
//! until the time is over.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::{ConnectOptions, Connection, PgPool};
use tokio::time::Instant;

use super::pg_error::{DatabaseError, is_full};
use crate::error_chain::ErrorChain;

/// How long the result of a look counts, so that many who wait do not connect at once.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// What is known of the way to Postgres. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Reachability(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    look: Mutex<Look>,
    /// It was not reached the last time.
    is_away: AtomicBool,
}

/// The last look.
#[derive(Debug, Default)]
struct Look {
    began: Option<Instant>,
    /// Why it has failed.
    cause: Option<String>,
}

impl Reachability {
    /// Connects once beside the pool, in a task, unless somebody has just done so.
    pub(super) fn look(&self, pool: &PgPool, timeout: Duration) {
        let mut look = self.last_look();
        if look.began.is_some_and(|at| at.elapsed() < LOOK_INTERVAL) {
            return;
        }
        look.began = Some(Instant::now());
        drop(look);
        let (shared, options) = (self.clone(), pool.connect_options());
        tokio::spawn(async move {
            let cause = match tokio::time::timeout(timeout, options.connect()).await {
                Ok(Ok(connection)) => {
                    let _ = tokio::time::timeout(timeout, connection.close()).await;
                    None
                }
                Ok(Err(error)) => Some(cause(&error, options.get_host(), options.get_port())),
                // As those who wait say themselves.
                Err(_) => None,
            };
            shared.last_look().cause = cause;
        });
    }

    /// There was no connection. Returns why, if that is known.
    pub(super) fn is_away(&self) -> Option<DatabaseError> {
        self.0.is_away.store(true, Ordering::Relaxed);
        let cause = self.last_look().cause.clone();
        cause.map(DatabaseError::Unreachable)
    }

    /// There is a connection.
    pub(super) fn is_there(&self) {
        let is_away = &self.0.is_away;
        if is_away.load(Ordering::Relaxed) && is_away.swap(false, Ordering::Relaxed) {
            self.last_look().cause = None;
            tracing::info!("Postgres can be reached again");
        }
    }

    fn last_look(&self) -> MutexGuard<'_, Look> {
        // Nothing panics while it holds the lock.
        self.0.look.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// For the operator. No password is in it.
fn cause(error: &sqlx::Error, host: &str, port: u16) -> String {
    let text = ErrorChain(error);
    match error {
        sqlx::Error::Io(io) if io.kind() == std::io::ErrorKind::ConnectionRefused => {
            format!("nothing listens at {host}:{port}: {text}")
        }
        error if is_full(error) => format!(
            "{text}: the pools of all processes together have to fit into what Postgres and the role allow"
        ),
        _ => text.to_string(),
    }
}
