//! `prune`: deletion on demand.

use std::fmt;
use std::time::Duration;

use sqlx::PgPool;

use super::pass::Pass;
use super::{Pruned, redelivery_window};
use crate::transaction::hint;

/// Deletes deliveries that were received, subjects that were advanced and attempts that failed
/// longer ago than `older_than`, and returns how many there were.
///
/// This is for a cron job. [`Retention`](crate::Retention) does it on a schedule.
///
/// It deletes in batches of at most 1000 rows, each in a transaction of its own, so that claims continue
/// meanwhile. If it is stopped, the rest is left for the next time. So is a batch if another transaction has locked one
/// of its rows for longer than 200 ms. That is logged at INFO. It works without pauses, and `Retention` for a quarter
/// of the time.
///
/// Deliveries of an endpoint whose redelivery window is not registered are kept. A process
/// registers it with the first delivery that it claims, and hourly after that.
///
/// # Errors
///
/// [`PruneError::TooShort`] if `older_than` is shorter than the longest redelivery window of any
/// endpoint on this database
/// ([`Provider::redelivery_window`](crate::Provider::redelivery_window)): a delivery that is
/// redelivered after its row was deleted is processed twice. Nothing is deleted then. A window
/// that was shortened still counts until a day after the last process with the longer one was
/// running. The window of an endpoint that no longer exists counts until that time and a day have passed since its last
/// registration; if it was wrong, set it to zero in `idempotent_webhook.redelivery_windows`.
///
/// [`PruneError::Database`] for any error of Postgres.
///
/// ```no_run
/// # async fn main_(pool: sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
///
/// let days = |n: u64| Duration::from_secs(n * 24 * 60 * 60);
/// let pruned = idempotent_webhook::prune(&pool, days(45)).await?;
/// println!("{} deliveries", pruned.deliveries);
/// # Ok(())
/// # }
/// ```
pub async fn prune(pool: &PgPool, older_than: Duration) -> Result<Pruned, PruneError> {
    if let Some(window) = redelivery_window::longer_than(older_than, pool).await? {
        return Err(PruneError::TooShort {
            endpoint: window.endpoint.to_string(),
            redelivery_window: window.length,
        });
    }
    let mut pruned = Pruned::default();
    Pass::complete(pool, older_than).run(&mut pruned).await?;
    Ok(pruned)
}

/// Why nothing, or not everything, was deleted.
#[derive(Debug)]
#[non_exhaustive]
pub enum PruneError {
    /// The age is shorter than a redelivery window.
    TooShort {
        /// The endpoint with the longest redelivery window.
        endpoint: String,
        /// That window, the shortest possible age.
        redelivery_window: Duration,
    },
    /// Postgres reported an error.
    Database(sqlx::Error),
}

impl fmt::Display for PruneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooShort {
                endpoint,
                redelivery_window,
            } => write!(
                f,
                "the provider of endpoint {endpoint:?} may redeliver for {}, and deliveries must be \
                 kept for at least as long",
                in_words(*redelivery_window)
            ),
            Self::Database(error) => write!(f, "could not prune deliveries{}", hint(error)),
        }
    }
}

fn in_words(time: Duration) -> String {
    const DAY: u64 = 24 * 60 * 60;
    match time.as_secs() {
        seconds if seconds > 0 && seconds % DAY == 0 => format!("{} days", seconds / DAY),
        _ => format!("{} seconds", time.as_secs_f64()),
    }
}

impl std::error::Error for PruneError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::TooShort { .. } => None,
            Self::Database(error) => Some(error),
        }
    }
}

impl From<sqlx::Error> for PruneError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}
