//! Forgetting deliveries that can no longer come again.

use std::fmt;
use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::types::PgInterval;

/// Small enough that a claim never waits for long on a row that is being deleted.
const BATCH: i64 = 1000;

const LONGEST_REDELIVERY_WINDOW: &str = "
    select endpoint, extract(epoch from redelivery_window)::float8
    from idempotent_webhook.redelivery_windows
    order by redelivery_window desc
    limit 1
";

const DELETE_DELIVERIES: &str = "
    delete from idempotent_webhook.deliveries
    where ctid = any (array(
        select ctid
        from idempotent_webhook.deliveries
        where received_at < now() - $1
        limit $2
    ))
";

const DELETE_SUBJECTS: &str = "
    delete from idempotent_webhook.subjects
    where ctid = any (array(
        select ctid
        from idempotent_webhook.subjects
        where advanced_at < now() - $1
        limit $2
    ))
    and advanced_at < now() - $1
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
}

/// Forgets the deliveries that were received, and the subjects that were advanced, longer
/// ago than `older_than`, and returns how many they were.
///
/// It deletes in batches of 1000, each in a transaction of its own, so claims go on
/// meanwhile; stopping it half-way leaves the rest for the next time.
///
/// # Errors
///
/// [`PruneError::TooShort`] if `older_than` is below the longest time for which the
/// provider of any endpoint on this database may still deliver again
/// ([`Provider::redelivery_window`](crate::Provider::redelivery_window)): what comes again
/// after it was forgotten is processed twice. Nothing is deleted then.
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
    let mut tx = pool.begin().await?;
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
    Ok(Pruned {
        deliveries: delete(pool, DELETE_DELIVERIES, older_than).await?,
        subjects: delete(pool, DELETE_SUBJECTS, older_than).await?,
    })
}

/// Deletes batch by batch until nothing is left that is so old.
async fn delete(pool: &PgPool, batch: &'static str, older_than: Duration) -> sqlx::Result<u64> {
    let age = interval(older_than);
    let mut deleted = 0;
    loop {
        let mut tx = pool.begin().await?;
        let rows = sqlx::query(batch)
            .bind(age)
            .bind(BATCH)
            .execute(&mut *tx)
            .await?
            .rows_affected();
        tx.commit().await?;
        deleted += rows;
        if rows == 0 {
            return Ok(deleted);
        }
    }
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
