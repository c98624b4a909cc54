//! Forgetting deliveries that can no longer come again.

mod pass;
mod ranges;
mod schedule;
mod turn;

use std::fmt;
use std::ops::AddAssign;
use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::types::PgInterval;

use pass::Pass;

pub use schedule::{Retention, RetentionTask};

/// Whatever the default is: at a higher level, those who delete the same rows at the same time
/// would fail.
const BEGIN: &str = "begin isolation level read committed";

/// Of an endpoint that has claimed nothing for longer than its window, nothing can come again.
const LONGEST_REDELIVERY_WINDOW: &str = "
    select endpoint, extract(epoch from redelivery_window)::float8
    from idempotent_webhook.redelivery_windows
    where registered_at > now() - redelivery_window - interval '1 day'
    order by redelivery_window desc
    limit 1
";

/// How many rows have been forgotten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pruned {
    /// Deliveries that were received before the age.
    pub deliveries: u64,
    /// Subjects that were last advanced before the age, see
    /// [`DedupeTx::advance`](crate::DedupeTx::advance).
    pub subjects: u64,
    /// Records of failures that are older than the age, see
    /// [`IdempotentWebhook::record_failures`](crate::IdempotentWebhook::record_failures).
    /// Those of deliveries that have been processed since go as well and do not count.
    pub failures: u64,
}

impl AddAssign for Pruned {
    fn add_assign(&mut self, other: Self) {
        self.deliveries += other.deliveries;
        self.subjects += other.subjects;
        self.failures += other.failures;
    }
}

/// Forgets the deliveries that were received, the subjects that were advanced and the
/// attempts that failed longer ago than `older_than`, and returns how many they were.
///
/// This is for a cron job; [`Retention`] does it on a schedule.
///
/// It reads each table once, at full speed and piece by piece, and deletes in batches of at
/// most 1000, each in a transaction of its own, so claims go on meanwhile; stopping it half-way
/// leaves the rest for the next time. PostgreSQL 13 reads the whole table for each piece, later
/// versions do not. [`Retention`] reads only what has something to prune, which matters from
/// some ten million rows on.
///
/// Of an endpoint whose redelivery window is not on record, nothing is deleted. A process
/// records it with the first delivery that it claims, and hourly after that.
///
/// # Errors
///
/// [`PruneError::TooShort`] if `older_than` is below the longest time for which the
/// provider of any endpoint on this database may still deliver again
/// ([`Provider::redelivery_window`](crate::Provider::redelivery_window)): what comes again
/// after it was forgotten is processed twice. Nothing is deleted then. A window that was
/// configured shorter holds until a day after the last process with the longer one was at
/// work. The window of an endpoint that is gone holds for as long as it is; if it was wrong, set
/// it to zero in `idempotent_webhook.redelivery_windows`.
///
/// [`PruneError::Database`] for anything that Postgres reports.
///
/// ```no_run
/// # async fn main_(pool: sqlx::PgPool) -> Result<(), idempotent_webhook::PruneError> {
/// use std::time::Duration;
///
/// let days = |n: u64| Duration::from_secs(n * 24 * 60 * 60);
/// let forgotten = idempotent_webhook::prune(&pool, days(45)).await?;
/// # Ok(())
/// # }
/// ```
pub async fn prune(pool: &PgPool, older_than: Duration) -> Result<Pruned, PruneError> {
    // Each statement is in a transaction, so that PgBouncer keeps it on one connection from
    // its preparation to its end.
    let mut tx = pool.begin_with(BEGIN).await?;
    let longest: Option<(String, f64)> = sqlx::query_as(LONGEST_REDELIVERY_WINDOW)
        .fetch_optional(&mut *tx)
        .await?;
    tx.commit().await?;
    if let Some((endpoint, seconds)) = longest
        && older_than.as_secs_f64() < seconds
    {
        return Err(PruneError::TooShort {
            endpoint,
            redelivery_window: Duration::from_secs_f64(seconds),
        });
    }
    let mut pruned = Pruned::default();
    Pass::complete(pool, older_than).run(&mut pruned).await?;
    Ok(pruned)
}

/// For `Duration::MAX` and the like, as far back as Postgres' timestamps allow is enough.
fn interval(duration: Duration) -> PgInterval {
    const MILLENNIUM: Duration = Duration::from_secs(1000 * 365 * 24 * 60 * 60);
    PgInterval {
        months: 0,
        days: 0,
        microseconds: i64::try_from(duration.min(MILLENNIUM).as_micros()).unwrap_or(i64::MAX),
    }
}

/// Why nothing, or not everything, was pruned.
#[derive(Debug)]
#[non_exhaustive]
pub enum PruneError {
    /// Deliveries would have been forgotten that may still come again.
    TooShort {
        /// The endpoint with the longest redelivery window.
        endpoint: String,
        /// That window, the shortest age that can be pruned.
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
                "the provider of endpoint {endpoint:?} may deliver again for {} seconds, and \
                 deliveries must be kept for at least as long",
                redelivery_window.as_secs_f64()
            ),
            Self::Database(_) => f.write_str("could not prune deliveries"),
        }
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
