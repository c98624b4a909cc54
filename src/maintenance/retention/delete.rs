//! The statements of retention. Each finds its rows by an index on their time, and deletes them by their
//! keys. That works on a distributed table, too.

use std::sync::Arc;
use std::time::Duration;

use sqlx::{AssertSqlSafe, PgConnection, Row};

use crate::pg_time::interval;
use crate::recovery::operator::Operation;
use crate::transaction::{RowKeys, is_lock_timeout};

/// How many rows are deleted at once: so few that no transaction waits for long for one of them. The statements have
/// the same number in their texts, for the planner to know that it is a small one.
const BATCH: usize = 1000;

/// What is deleted in one transaction.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// The activity and the settings of this age and, after a year at least, the event types, the actions of operators,
    /// the positions of lists, and what providers were asked for. After a day, which deliveries came again.
    Records(Duration),
    /// What is kept of an endpoint's deliveries that were processed since. A failure that was
    /// kept while another process was still running the delivery leaves such a row.
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
    /// Where the batch before has ended: Postgres would read what was deleted until it is vacuumed. In
    /// microseconds of Unix time.
    pub(super) since: Option<i64>,
}

/// What is deleted by its age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rows {
    Dead,
    Recorded,
    Archived,
    Discarded,
    /// And their bodies.
    Deliveries,
    Subjects,
}

/// The result of a step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Batch {
    pub(super) deleted: u64,
    /// There may be more.
    pub(super) is_full: bool,
    /// The time of the last row.
    pub(super) last: Option<i64>,
}

impl Rows {
    pub(super) const ALL: [Self; 6] = [
        Self::Dead,
        Self::Recorded,
        Self::Archived,
        Self::Discarded,
        Self::Deliveries,
        Self::Subjects,
    ];

    pub(super) fn table(self) -> &'static str {
        match self {
            Self::Dead | Self::Recorded | Self::Archived => "kept_deliveries",
            Self::Discarded => "discarded",
            Self::Deliveries => "deliveries",
            Self::Subjects => "subjects",
        }
    }

    /// The column with the time, the one with the key beside endpoint and tenant, and which rows.
    fn columns(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Dead => ("last_failed_at", "delivery_id", "state = 'dead'"),
            Self::Recorded => ("last_failed_at", "delivery_id", "state = 'recorded'"),
            Self::Archived => ("archived_until", "delivery_id", "state = 'processed'"),
            Self::Discarded => ("discarded_at", "delivery_id", "true"),
            Self::Deliveries => ("received_at", "delivery_id", "true"),
            Self::Subjects => ("advanced_at", "subject", "true"),
        }
    }

    /// What a transaction of the application has locked is left for the next round, with `skip locked`. Citus has no
    /// such select over the shards of a distributed table.
    fn lock(self) -> &'static str {
        match self.may_be_distributed() {
            true => "",
            false => "for update skip locked",
        }
    }

    fn may_be_distributed(self) -> bool {
        match self {
            Self::Deliveries | Self::Subjects => true,
            Self::Dead | Self::Recorded | Self::Archived | Self::Discarded => false,
        }
    }

    /// Whether reconciliation takes a delivery for missing once its row is deleted.
    fn tell_of_deliveries(self) -> bool {
        match self {
            Self::Dead | Self::Recorded | Self::Discarded | Self::Deliveries => true,
            Self::Archived | Self::Subjects => false,
        }
    }

    fn sql(self, template: &'static str) -> AssertSqlSafe<String> {
        let (time, key, which) = self.columns();
        AssertSqlSafe(
            template
                .replace("{table}", self.table())
                .replace("{time}", time)
                .replace("{key}", key)
                .replace("{which}", which)
                .replace("{lock}", self.lock()),
        )
    }
}

const SELECT_OLD: &str = "
    select tenant, {key}, (extract(epoch from {time}) * 1000000)::int8 as time
    from idempotent_webhook.{table}
    where endpoint = $1
        and {which}
        and {time} < now() - $2
        and {time} >= coalesce(timestamptz 'epoch' + $3 * interval '1 microsecond', '-infinity')
    order by {time}
    limit 1000
    {lock}
";

const DELETE_OLD: &str = "
    delete from idempotent_webhook.{table}
    where endpoint = $1
        and (tenant, {key}) in (select * from unnest($2::text[], $3::text[]))
        -- It may have been updated since it was selected.
        and {which}
        and {time} < now() - $4
";

/// A transaction of the application may hold one of the rows. Whatever waits for another one waits for this step, too.
/// Citus has its workers wait no longer either, by a setting that means nothing to another server.
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
                let mut resolved = RowKeys::read(&resolved.fetch_all(&mut *connection).await?)?;
                let was_full = resolved.len() == BATCH;
                for sql in [
                    include_str!("lock_resolved.sql"),
                    include_str!("still_processed.sql"),
                ] {
                    let left = resolved.bind(sqlx::query(sql), endpoint);
                    resolved = RowKeys::read(&left.fetch_all(&mut *connection).await?)?;
                }
                let delete =
                    resolved.bind(sqlx::query(include_str!("delete_resolved.sql")), endpoint);
                delete.execute(connection).await?;
                Ok(Batch {
                    // Otherwise all of them are locked.
                    is_full: was_full && !resolved.is_empty(),
                    ..Batch::default()
                })
            }
            Self::Erase(endpoint, age) => {
                let dead = sqlx::query(include_str!("dead.sql")).bind(&**endpoint);
                let dead = dead.bind(interval(*age)).fetch_all(&mut *connection);
                let dead = RowKeys::read(&dead.await?)?;
                Operation::Erase.write(&dead, endpoint, connection).await?;
                Ok(Batch {
                    is_full: dead.len() == BATCH,
                    ..Batch::default()
                })
            }
            Self::Old(old) => old.delete(connection).await,
        }
    }
}

impl Old {
    async fn delete(&self, connection: &mut PgConnection) -> sqlx::Result<Batch> {
        let endpoint = &*self.endpoint;
        let select = sqlx::query(self.rows.sql(SELECT_OLD))
            .bind(endpoint)
            .bind(interval(self.age))
            .bind(self.since);
        let rows = select.fetch_all(&mut *connection).await?;
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
            // The transaction is aborted: its commit rolls it back. The next round tries these again.
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
            is_full: rows.len() == BATCH,
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
