//! `prune`: deletion on demand.

use std::fmt;
use std::time::Duration;

use sqlx::PgPool;

use super::pass::Pass;
use super::{Pruned, redelivery_window};
use crate::transaction::hint;

/// Deletes rows that are older than `older_than`, and returns how many.
///
/// The age of a delivery counts from when it was received, the age of a subject from when it was last advanced, and the
/// age of a failed delivery from its last failure.
///
/// Use this in a cron job. [`Retention`](crate::Retention) does the same on a schedule.
///
/// It deletes in batches of at most 1000 rows, each in its own transaction, so that claims continue meanwhile. If it is
/// stopped, the next call deletes the rest. If another transaction keeps a row of a batch locked for longer than 200
/// ms, the next call deletes this batch, and the delay is logged at INFO. `prune` works without pauses, while
/// `Retention` works a quarter of the time and pauses for the rest.
///
/// Deliveries of an endpoint are not deleted as long as its redelivery window is not registered. A process registers
/// the window with the first delivery that it claims, and hourly after that.
///
/// # Errors
///
/// [`PruneError::TooShort`] if `older_than` is shorter than the longest redelivery window of any endpoint on this
/// database ([`Provider::redelivery_window`](crate::Provider::redelivery_window)), because a delivery that is
/// redelivered after its row was deleted would be processed twice. In this case, nothing is deleted.
///
/// If a window was shortened, the longer window stays in force for a day after the last process that uses it has
/// stopped. The window of an endpoint that no longer exists stays in force for its own length and another day after its
/// last registration. If such a window was wrong, set it to zero in `idempotent_webhook.redelivery_windows`.
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
        /// The length of that window, which is the shortest possible age.
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
