//! The statements of retention. Each finds its rows by an index on their time, and deletes them by their keys. This
//! also works on a distributed table.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, PgConnection, Row};

use crate::recovery::operator::Operation;
use crate::tasks_and_errors::sqlx_error::is_lock_timeout;
use crate::transaction::pg_time::interval;
use crate::transaction::{DELETED_BYTES, RowKeys, first_within};

/// The maximum number of rows that are deleted at once: so few that no transaction waits long for one of these rows.
/// The statements contain the same number as a literal, so that the planner knows that it is small.
const BATCH: usize = 1000;

/// The rows that one transaction deletes or, with `Erase`, erases.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Activity and settings that are older than this age. Event types, actions of operators, positions of lists, and
    /// redelivery requests are deleted after a year at the earliest. Notes that a delivery was sent again are deleted
    /// after a day.
    Records(Duration),
    /// The kept rows of an endpoint's processed deliveries. Such a row is left behind if a failure is kept while
    /// another process is still running the delivery.
    Resolved(Arc<str>),
    /// The content of an endpoint's deliveries that died this long ago.
    Erase(Arc<str>, Duration),
    Old(Old),
}

/// Rows of an endpoint that are older than an age.
#[derive(Clone, Debug)]
pub(super) struct Old {
    pub(super) rows: Rows,
    pub(super) endpoint: Arc<str>,
    pub(super) age: Duration,
    /// The time of the last row of the previous batch, in microseconds of Unix time. If the search did not start there,
    /// Postgres would read the deleted rows again until they are vacuumed.
    pub(super) since: Option<i64>,
}

/// The kinds of rows that are deleted by age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rows {
    Dead,
    Recorded,
    /// Deliveries that were erased before they had failed.
    Erased,
    Archived,
    Discarded,
    /// Claims of deliveries, and the bodies that are stored with them.
    Deliveries,
    Subjects,
}

/// The result of a step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Batch {
    pub(super) deleted: u64,
    /// Whether there may be more rows.
    pub(super) is_full: bool,
    /// The time of the last row, in microseconds of Unix time.
    pub(super) last: Option<i64>,
}

impl Rows {
    pub(super) const ALL: [Self; 7] = [
        Self::Dead,
        Self::Recorded,
        Self::Erased,
        Self::Archived,
        Self::Discarded,
        Self::Deliveries,
        Self::Subjects,
    ];

    pub(super) fn table(self) -> &'static str {
        match self {
            Self::Dead | Self::Recorded | Self::Erased | Self::Archived => "kept_deliveries",
            Self::Discarded => "discarded",
            Self::Deliveries => "deliveries",
            Self::Subjects => "subjects",
        }
    }

    /// The column with the time, and the condition that selects the rows.
    fn old(self) -> (&'static str, &'static str) {
        match self {
            Self::Dead => ("last_failed_at", "state = 'dead'"),
            Self::Recorded => ("last_failed_at", "state = 'recorded'"),
            Self::Erased => (
                "last_received_at",
                "state = 'recorded' and last_failed_at is null",
            ),
            Self::Archived => ("archived_until", "state = 'processed'"),
            Self::Discarded => ("discarded_at", "true"),
            Self::Deliveries => ("received_at", "true"),
            Self::Subjects => ("advanced_at", "true"),
        }
    }

    /// The columns of the primary key, in its order.
    fn key(self) -> [&'static str; 3] {
        match self {
            Self::Dead | Self::Recorded | Self::Erased | Self::Archived => {
                ["endpoint", "tenant", "delivery_id"]
            }
            Self::Discarded | Self::Deliveries => ["delivery_id", "endpoint", "tenant"],
            Self::Subjects => ["endpoint", "tenant", "subject"],
        }
    }

    /// The column of the key that is neither the endpoint nor the tenant.
    fn id(self) -> &'static str {
        match self {
            Self::Subjects => "subject",
            Self::Dead
            | Self::Recorded
            | Self::Erased
            | Self::Archived
            | Self::Discarded
            | Self::Deliveries => "delivery_id",
        }
    }

    /// With `skip locked`, rows that a transaction of the application has locked are left for the next round. Citus
    /// does not support this in a select over the shards of a distributed table.
    fn lock(self) -> &'static str {
        match self.may_be_distributed() {
            true => "",
            false => "for update skip locked",
        }
    }

    /// The size of the body that is deleted with the row.
    fn body_bytes(self) -> &'static str {
        match self {
            Self::Dead | Self::Recorded | Self::Erased | Self::Archived => {
                "coalesce(body_bytes, 0)"
            }
            Self::Discarded | Self::Deliveries | Self::Subjects => "0",
        }
    }

    fn may_be_distributed(self) -> bool {
        match self {
            Self::Deliveries | Self::Subjects => true,
            Self::Dead | Self::Recorded | Self::Erased | Self::Archived | Self::Discarded => false,
        }
    }

    /// Whether reconciliation could mistake a delivery for a missing one once its row is deleted.
    fn tell_of_deliveries(self) -> bool {
        match self {
            Self::Dead | Self::Recorded | Self::Erased | Self::Discarded | Self::Deliveries => true,
            Self::Archived | Self::Subjects => false,
        }
    }

    fn sql(self, template: &'static str) -> AssertSqlSafe<String> {
        let (time, which) = self.old();
        let [first, second, third] = self.key();
        let is_key = format!(
            "old.{first} = any (array[key.{first}]) and old.{second} = key.{second} and old.{third} = key.{third}"
        );
        AssertSqlSafe(
            template
                .replace("{table}", self.table())
                .replace("{time}", time)
                .replace("{id}", self.id())
                .replace("{which}", which)
                .replace("{lock}", self.lock())
                .replace("{bytes}", self.body_bytes())
                .replace("{is_key}", &is_key),
        )
    }
}

const SELECT_OLD: &str = "
    select tenant, {id}, (extract(epoch from {time}) * 1000000)::int8 as time, {bytes} as body_bytes
    from idempotent_webhook.{table}
    where endpoint = $1
        and {which}
        and {time} > '-infinity'
        and {time} < now() - $2
        and {time} >= coalesce(timestamptz 'epoch' + $3 * interval '1 microsecond', '-infinity')
    order by {time}
    limit 1000
    {lock}
";

const DELETE_OLD: &str = "
    delete from idempotent_webhook.{table} as old
    using unnest($1::text[], $2::text[], $3::text[]) as key (endpoint, tenant, {id})
    where {is_key}
        -- A row that is not locked may have been updated since it was selected. The `coalesce` keeps the planner from
        -- using the index on `{time}`.
        and coalesce(old.{time}, 'infinity') < now() - $4
";

/// Limits how long this step waits for a row that a transaction of the application holds, because other transactions
/// may wait for rows that this step has locked. The first setting makes Citus pass the limit on to its workers. It has
/// no effect on other servers.
const LIMIT_WAIT: &str = "
    set local citus.propagate_set_commands = 'local';
    set local lock_timeout = '200ms'
";

impl Step {
    pub(super) async fn run(&self, connection: &mut PgConnection) -> sqlx::Result<Batch> {
        match self {
            Self::Records(age) => {
                for sql in [include_str!("activity.sql"), include_str!("records.sql")] {
                    let delete = sqlx::query(sql).bind(interval(*age));
                    delete.execute(&mut *connection).await?;
                }
                let delete = sqlx::query(include_str!("sent_again.sql"));
                delete.execute(connection).await?;
                Ok(Batch::default())
            }
            Self::Resolved(endpoint) => {
                let resolved = sqlx::query(include_str!("resolved.sql")).bind(&**endpoint);
                let resolved = RowKeys::read(&resolved.fetch_all(&mut *connection).await?)?;
                let was_full = resolved.len() == BATCH;
                let lock = resolved.bind(sqlx::query(include_str!("lock_resolved.sql")), endpoint);
                let (locked, is_cut) = batch_of(lock.fetch_all(&mut *connection).await?)?;
                let locked = RowKeys::read(&locked)?;
                let still = locked.bind(sqlx::query(include_str!("still_processed.sql")), endpoint);
                let resolved = RowKeys::read(&still.fetch_all(&mut *connection).await?)?;
                let delete =
                    resolved.bind(sqlx::query(include_str!("delete_resolved.sql")), endpoint);
                delete.execute(connection).await?;
                Ok(Batch {
                    // If nothing could be deleted, all of the rows are locked, and another step would only find them
                    // again.
                    is_full: (was_full || is_cut) && !resolved.is_empty(),
                    ..Batch::default()
                })
            }
            Self::Erase(endpoint, age) => {
                let dead = sqlx::query(include_str!("dead.sql")).bind(&**endpoint);
                let dead = dead.bind(interval(*age)).fetch_all(&mut *connection);
                let (dead, is_full) = batch_of(dead.await?)?;
                let dead = RowKeys::read(&dead)?;
                Operation::Erase.write(&dead, endpoint, connection).await?;
                Ok(Batch {
                    is_full,
                    ..Batch::default()
                })
            }
            Self::Old(old) => old.delete(connection).await,
        }
    }
}

/// Returns the first of these rows, as many as the limit for the total size of their bodies allows, and whether there
/// may be more rows.
fn batch_of(mut rows: Vec<PgRow>) -> sqlx::Result<(Vec<PgRow>, bool)> {
    let was_full = rows.len() == BATCH;
    let mut sizes = Vec::with_capacity(rows.len());
    for row in &rows {
        sizes.push(usize::try_from(row.try_get::<i32, _>("body_bytes")?).unwrap_or_default());
    }
    let first = first_within(DELETED_BYTES, sizes);
    let is_cut = first < rows.len();
    rows.truncate(first);
    Ok((rows, was_full || is_cut))
}

impl Old {
    async fn delete(&self, connection: &mut PgConnection) -> sqlx::Result<Batch> {
        let endpoint = &*self.endpoint;
        let select = sqlx::query(self.rows.sql(SELECT_OLD))
            .bind(endpoint)
            .bind(interval(self.age))
            .bind(self.since);
        let (rows, is_full) = batch_of(select.fetch_all(&mut *connection).await?)?;
        let Some(last) = rows.last() else {
            return Ok(Batch::default());
        };
        let last = last.try_get("time")?;
        let keys = RowKeys::read(&rows)?;
        if self.rows.tell_of_deliveries() {
            let remember = sqlx::query(include_str!("remember.sql")).bind(endpoint);
            let remember = remember.bind(interval(self.age));
            remember.execute(&mut *connection).await?;
        }
        let deleted = match self.delete_keys(keys, connection).await {
            // The transaction is aborted, so its commit rolls it back. The next round tries these rows again.
            Err(error) if is_lock_timeout(&error) => {
                tracing::info!(
                    endpoint,
                    table = self.rows.table(),
                    rows = rows.len(),
                    "webhook retention leaves a batch for the next round: another transaction holds one of its rows"
                );
                0
            }
            deleted => deleted?,
        };
        Ok(Batch {
            deleted,
            is_full,
            last,
        })
    }

    async fn delete_keys(
        &self,
        mut keys: RowKeys,
        connection: &mut PgConnection,
    ) -> sqlx::Result<u64> {
        let endpoint = &*self.endpoint;
        if self.rows.may_be_distributed() {
            sqlx::raw_sql(LIMIT_WAIT).execute(&mut *connection).await?;
        }
        if self.rows == Rows::Deliveries {
            let kept = keys.bind(sqlx::query(include_str!("still_kept.sql")), endpoint);
            let kept = RowKeys::read(&kept.fetch_all(&mut *connection).await?)?;
            keys.remove(&kept);
            let deleted = keys.delete_claims(endpoint, Some(self.age), connection);
            return Ok(deleted.await?.len() as u64);
        }
        let delete = keys.bind(sqlx::query(self.rows.sql(DELETE_OLD)), endpoint);
        let deleted = delete.bind(interval(self.age)).execute(connection).await?;
        Ok(deleted.rows_affected())
    }
}
