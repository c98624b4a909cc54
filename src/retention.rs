//! Forgetting deliveries that can no longer come again.

mod schedule;

use std::fmt;
use std::ops::AddAssign;
use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::types::PgInterval;

use crate::meter;

pub use schedule::{Retention, RetentionTask};

/// Small enough that a claim never waits for long on a row that is being deleted.
const BATCH: u32 = 1000;

/// How many pages of a table are looked at in one transaction: 1 MiB with pages of 8 KiB.
///
/// Rows are found by reading the table once, page after page. An index on their time would
/// cost each claim, and a BRIN index does not help for long: once the place of pruned rows is
/// taken by new ones, its ranges reach from the oldest to the newest row that has ever been
/// there.
const PAGES: i64 = 128;

const LONGEST_REDELIVERY_WINDOW: &str = "
    select endpoint, extract(epoch from redelivery_window)::float8
    from idempotent_webhook.redelivery_windows
    order by redelivery_window desc
    limit 1
";

/// A table whose rows may go.
struct Table {
    name: &'static str,
    count_pages: &'static str,
    /// Deletes a batch of old rows from some of its pages.
    delete_batch: &'static str,
}

/// Of each endpoint, whatever may still be delivered again is kept.
macro_rules! table {
    ($name:literal, aged by $time:literal) => {
        Table {
            name: $name,
            count_pages: concat!(
                "select pg_relation_size('idempotent_webhook.",
                $name,
                "') / current_setting('block_size')::int8"
            ),
            delete_batch: concat!(
                "
                delete from idempotent_webhook.",
                $name,
                " as old
                where ctid = any (array(
                    select ctid
                    from idempotent_webhook.",
                $name,
                " as candidate
                    where ctid >= format('(%s,0)', $3::int8)::tid
                        and ctid < format('(%s,0)', $4::int8)::tid
                        and ",
                $time,
                " < now() - $1
                        and not exists (
                            select
                            from idempotent_webhook.redelivery_windows
                            where redelivery_windows.endpoint = candidate.endpoint
                                and candidate.",
                $time,
                " >= now() - redelivery_window
                        )
                    limit $2
                ))
                -- It may have been updated since it was selected.
                and old.",
                $time,
                " < now() - $1"
            ),
        }
    };
}

const DELIVERIES: Table = table!("deliveries", aged by "received_at");
const BODIES: Table = table!("bodies", aged by "received_at");
const SUBJECTS: Table = table!("subjects", aged by "advanced_at");
const FAILURES: Table = table!("failures", aged by "last_failed_at");

/// Of all who would prune, one gets it, until the end of its transaction.
const TAKE_TURN: &str = "
    select pg_try_advisory_xact_lock(hashtextextended('idempotent_webhook.retention', 0))
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
/// It reads each table once, piece by piece, and deletes in batches of at most 1000, each in
/// a transaction of its own, so claims go on meanwhile; stopping it half-way leaves the rest
/// for the next time. PostgreSQL 13 reads the whole table for each piece, later versions do
/// not.
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
    let mut pruned = Pruned::default();
    delete_all(pool, older_than, Turns::NotNeeded, || true, &mut pruned).await?;
    Ok(pruned)
}

/// Whether others may prune at the same time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turns {
    NotNeeded,
    OneAtATime,
}

/// Deletes batch by batch while it may go on and something is left that is so old.
async fn delete_all(
    pool: &PgPool,
    older_than: Duration,
    turns: Turns,
    go_on: impl Fn() -> bool,
    pruned: &mut Pruned,
) -> sqlx::Result<()> {
    for (table, count) in [
        (DELIVERIES, &mut pruned.deliveries),
        // They are part of a delivery.
        (BODIES, &mut 0),
        (SUBJECTS, &mut pruned.subjects),
        (FAILURES, &mut pruned.failures),
    ] {
        // What is added meanwhile is not old.
        let pages = count_pages(pool, &table).await?;
        let mut page = 0;
        while page < pages && go_on() {
            let Some(deleted) = delete_batch(pool, &table, page, older_than, turns).await? else {
                return Ok(());
            };
            *count += deleted;
            meter::pruned(table.name, deleted);
            if deleted < BATCH.into() {
                page += PAGES;
            }
        }
    }
    Ok(())
}

async fn count_pages(pool: &PgPool, table: &Table) -> sqlx::Result<i64> {
    let mut tx = pool.begin().await?;
    let pages = sqlx::query_scalar(table.count_pages)
        .fetch_one(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok(pages)
}

/// Deletes from the pages that begin with `page`. `None`: it is somebody else's turn.
async fn delete_batch(
    pool: &PgPool,
    table: &Table,
    page: i64,
    older_than: Duration,
    turns: Turns,
) -> sqlx::Result<Option<u64>> {
    let mut tx = pool.begin().await?;
    if turns == Turns::OneAtATime {
        let ours: bool = sqlx::query_scalar(TAKE_TURN).fetch_one(&mut *tx).await?;
        if !ours {
            tx.rollback().await?;
            return Ok(None);
        }
    }
    let deleted = sqlx::query(table.delete_batch)
        .bind(interval(older_than))
        .bind(i64::from(BATCH))
        .bind(page)
        .bind(page + PAGES)
        .execute(&mut *tx)
        .await?
        .rows_affected();
    tx.commit().await?;
    Ok(Some(deleted))
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
