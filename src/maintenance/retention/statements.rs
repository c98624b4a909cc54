//! The statements of retention. Each finds its rows by an index on their time, and deletes them by their
//! keys. That works on a distributed table, too.

use std::sync::Arc;
use std::time::Duration;

use sqlx::{AssertSqlSafe, PgConnection, Row};

use crate::pg_time::interval;
use crate::recovery::operator::Operation;
use crate::transaction::{RowKeys, is_lock_timeout};

/// How many rows are deleted at once: so few that nobody waits for long for one of them.
///
/// In the text of the statements, for the planner to know that it is a small number.
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
                .replace("{lock}", self.lock())
                .replace("{batch}", &BATCH.to_string()),
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
    limit {batch}
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
const LIMIT_WAIT: &str = "set local lock_timeout = '200ms'";

/// Deliveries of which something is kept that may still run. Without their claims they would be processed
/// again, so they are left for a round in which nothing is kept of them. Without this: A takes
/// it, B processes it and misses what A has taken, the claim is deleted, and A claims and commits: two effects.
const STILL_KEPT: &str = "
    select tenant, delivery_id
    from idempotent_webhook.kept_deliveries
    where endpoint = $1
        and (tenant, delivery_id) in (select * from unnest($2::text[], $3::text[]))
        and state <> 'processed'
";

/// Nobody forgets a delivery or has it processed again while its row is locked. Without this: A is selected, an operator
/// has it processed again, and its row is deleted before it runs.
const LOCK_RESOLVED: &str = "
    select tenant, delivery_id
    from idempotent_webhook.kept_deliveries
    where endpoint = $1
        and (tenant, delivery_id) in (select * from unnest($2::text[], $3::text[]))
        and state <> 'processed'
        and last_failed_at is not null
        and taken_by is null
    for update skip locked
";

/// Of those that are locked. It is a statement of its own, since one of the tables may be distributed.
const STILL_PROCESSED: &str = "
    select tenant, delivery_id
    from idempotent_webhook.deliveries
    where endpoint = $1
        and (tenant, delivery_id) in (select * from unnest($2::text[], $3::text[]))
";

const DELETE_RESOLVED: &str = "
    delete from idempotent_webhook.kept_deliveries
    where endpoint = $1
        and (tenant, delivery_id) in (select * from unnest($2::text[], $3::text[]))
";

const SELECT_RESOLVED: &str = "
    select kept.tenant, kept.delivery_id
    from idempotent_webhook.kept_deliveries as kept
    join idempotent_webhook.deliveries using (endpoint, tenant, delivery_id)
    where kept.endpoint = $1
        and kept.state in ('recorded', 'due', 'dead')
        and kept.last_failed_at is not null
        and kept.taken_by is null
    limit {batch}
";

const SELECT_DEAD: &str = "
    select tenant, delivery_id
    from idempotent_webhook.kept_deliveries
    where endpoint = $1 and state = 'dead' and died_at < now() - $2
    order by died_at
    limit {batch}
    for update skip locked
";

/// Without this: A commits, its claim is deleted, and reconciliation finds it missing: two effects.
const REMEMBER_PRUNED: &str = "
    insert into idempotent_webhook.pruned as known (endpoint, before)
    values ($1, now() - $2)
    on conflict (endpoint) do update
    set before = greatest(known.before, excluded.before)
";

const DELETE_ACTIVITY: &str = "
    delete from idempotent_webhook.activity
    where hour < now() - $1
";

/// Late, so that a type that comes once a year is not new.
const DELETE_EVENT_TYPES: &str = "
    delete from idempotent_webhook.event_types
    where last_at < now() - greatest($1, interval '1 year')
";

const DELETE_REJECTIONS: &str = "
    delete from idempotent_webhook.rejections
    where hour < now() - $1
";

const DELETE_SETTINGS: &str = "
    delete from idempotent_webhook.endpoint_settings
    where told_at < now() - $1
";

/// Those of lists that nobody reconciles any more.
const DELETE_RECONCILIATIONS: &str = "
    delete from idempotent_webhook.reconciliations
    where greatest(next_round_at, turn_ends_at) < now() - greatest($1, interval '1 year')
";

/// Those that nobody compares any more.
const DELETE_SUBSCRIPTIONS: &str = "
    delete from idempotent_webhook.subscriptions
    where next_at < now() - greatest($1, interval '1 year')
";

/// Late, so that none is asked for anew that was asked for in vain.
const DELETE_REDELIVERY_REQUESTS: &str = "
    delete from idempotent_webhook.redelivery_requests
    where first_at < now() - greatest($1, interval '1 year')
";

/// Deletes a part of them each time, since they are many. Their results are soon of no interest.
const DELETE_ACTION_DELIVERIES: &str = "
    delete from idempotent_webhook.operator_action_deliveries as of_action
    using (
        select each.action, each.endpoint, each.tenant, each.delivery_id
        from idempotent_webhook.operator_actions
        join idempotent_webhook.operator_action_deliveries as each on each.action = id
        where began_at < now() - greatest($1, interval '30 days')
        limit 10000
    ) as old
    where of_action.action = old.action
        and of_action.endpoint = old.endpoint
        and of_action.tenant = old.tenant
        and of_action.delivery_id = old.delivery_id
";

const DELETE_ACTIONS: &str = "
    delete from idempotent_webhook.operator_actions
    where began_at < now() - greatest($1, interval '1 year')
        and not exists (
            select from idempotent_webhook.operator_action_deliveries as each where each.action = id
        )
";

/// No operation takes as long as this. The last one of its transaction, and of so few rows that an operation, which waits for
/// it, and notes, which wait for the operation, wait for a moment.
const DELETE_SENT_AGAIN: &str = "
    delete from idempotent_webhook.sent_again
    where (delivery_id, endpoint, tenant) in (
        select delivery_id, endpoint, tenant
        from idempotent_webhook.sent_again
        where received_at < now() - interval '1 day'
        limit 20000
    )
";

impl Step {
    pub(super) async fn run(&self, connection: &mut PgConnection) -> sqlx::Result<Batch> {
        match self {
            Self::Records(age) => {
                for sql in [
                    DELETE_ACTIVITY,
                    DELETE_EVENT_TYPES,
                    DELETE_REJECTIONS,
                    DELETE_SETTINGS,
                    DELETE_RECONCILIATIONS,
                    DELETE_SUBSCRIPTIONS,
                    DELETE_REDELIVERY_REQUESTS,
                    DELETE_ACTION_DELIVERIES,
                    DELETE_ACTIONS,
                ] {
                    let delete = sqlx::query(sql).bind(interval(*age));
                    delete.execute(&mut *connection).await?;
                }
                sqlx::query(DELETE_SENT_AGAIN).execute(connection).await?;
                Ok(Batch::default())
            }
            Self::Resolved(endpoint) => {
                let resolved = sqlx::query(Rows::Deliveries.sql(SELECT_RESOLVED)).bind(&**endpoint);
                let mut resolved = RowKeys::read(&resolved.fetch_all(&mut *connection).await?)?;
                let was_full = resolved.len() == BATCH;
                for sql in [LOCK_RESOLVED, STILL_PROCESSED] {
                    let left = resolved.bind(sqlx::query(sql), endpoint);
                    resolved = RowKeys::read(&left.fetch_all(&mut *connection).await?)?;
                }
                let delete = resolved.bind(sqlx::query(DELETE_RESOLVED), endpoint);
                delete.execute(connection).await?;
                Ok(Batch {
                    // Otherwise all of them are locked.
                    is_full: was_full && !resolved.is_empty(),
                    ..Batch::default()
                })
            }
            Self::Erase(endpoint, age) => {
                let dead = sqlx::query(Rows::Dead.sql(SELECT_DEAD)).bind(&**endpoint);
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
            // In the same transaction, so that reconciliation does not take what was deleted for missing.
            let remember = sqlx::query(REMEMBER_PRUNED).bind(endpoint);
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
            sqlx::query(LIMIT_WAIT).execute(&mut *connection).await?;
        }
        if self.rows == Rows::Deliveries {
            let kept = keys.bind(sqlx::query(STILL_KEPT), endpoint);
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
