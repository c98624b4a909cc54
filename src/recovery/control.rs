//! What operators do with kept deliveries.

use std::time::SystemTime;

use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{PgConnection, PgPool, Postgres, Row};
use tokio::time::Instant;

use super::kept::KeptState;
use crate::maintenance::claims::Keys;
use crate::pg_time::{from_unix_time, interval, unix_time};
use crate::transaction::BEGIN_APART;

/// How many deliveries are changed in one transaction.
const BATCH: i64 = 1000;

/// A filter that is not given must not cost an index: statements with a filter are planned for it.
const PLAN_FOR_VALUES: &str = "select set_config('plan_cache_mode', 'force_custom_plan', true)";

/// The state as operators know it.
macro_rules! state {
    () => {
        "case
            when kept.state = 'due' and state.paused_at is not null then 'paused'
            else kept.state
        end"
    };
}

/// Of the endpoint `$1`, the tenant `$2` if it is given, and a [`Filter`], to `$9`. The state as the table
/// has it comes first, for the index. What is processed is only meant if the filter says so.
macro_rules! is_chosen {
    () => {
        "kept.endpoint = $1
        and ($2::text is null or kept.tenant = $2)
        and (
            $3::text is null and kept.state <> 'processed'
            or kept.state = (case when $3 in ('paused', 'due or paused') then 'due' else $3 end)
                and (
                    $3 = 'due or paused'
                    or kept.state <> 'due'
                    or (state.paused_at is not null) = ($3 = 'paused')
                )
        )
        and ($4::text is null or kept.event_type = $4)
        and ($5::text is null or strpos(kept.reason, $5) > 0)
        and ($6::text is null or kept.reason_group = $6::text::uuid)
        and ($7::float8 is null or kept.last_failed_at <= to_timestamp($7))
        and ($8::float8 is null or kept.processed_at >= to_timestamp($8))
        and ($9::float8 is null or kept.processed_at < to_timestamp($9))"
    };
}

const LIST: &str = concat!(
    "
    select
        kept.tenant_name, kept.tenant, kept.delivery_id, kept.event_type, kept.attempts,
        kept.status, kept.reason,
        extract(epoch from kept.first_received_at)::float8 as first_received_at,
        extract(epoch from kept.last_failed_at)::float8 as last_failed_at,
        extract(epoch from kept.next_attempt_at)::float8 as next_attempt_at,
        extract(epoch from kept.processed_at)::float8 as processed_at,
        ",
    state!(),
    " as state
    from idempotent_webhook.kept_deliveries as kept
    left join idempotent_webhook.kept_endpoints as state using (endpoint)
    where ",
    is_chosen!(),
    "
    order by kept.delivery_id, kept.tenant
    limit $10
"
);

#[cfg(feature = "dashboard")]
const COUNT: &str = concat!(
    "
    select count(*)
    from (
        select
        from idempotent_webhook.kept_deliveries as kept
        left join idempotent_webhook.kept_endpoints as state using (endpoint)
        where ",
    is_chosen!(),
    "
        limit $10
    ) as chosen
"
);

/// Keyset: those after the batch before, which ended at `$10`, in the order of their last failures, which
/// an index has, so that no batch reads what those before it have changed. Without it, those that have
/// never failed.
macro_rules! is_next {
    () => {
        "case
            when $10::float8 is null then kept.last_failed_at is null
            else kept.last_failed_at >= to_timestamp($10)
        end"
    };
}

/// At most `$11`.
const RETRY_ALL: &str = concat!(
    "
    with chosen as (
        select kept.endpoint, kept.tenant, kept.delivery_id, kept.last_failed_at
        from idempotent_webhook.kept_deliveries as kept
        join idempotent_webhook.kept_requests as request using (endpoint, tenant, delivery_id)
        left join idempotent_webhook.kept_endpoints as state using (endpoint)
        where ",
    is_chosen!(),
    "
            and ",
    is_next!(),
    "
            and (kept.state = 'dead' or kept.state = 'due' and kept.next_attempt_at > now())
            and (kept.taken_at is null or kept.taken_at < now() - interval '5 seconds')
            -- Not those of a batch before that have failed again.
            and (kept.last_failed_at is null or kept.last_failed_at < now() - $12)
        order by kept.last_failed_at
        limit $11
        for update of kept skip locked
    ),
    changed as (
        update idempotent_webhook.kept_deliveries as kept
        set state = 'due', retries = 0, next_attempt_at = now(), taken_at = null, takes = takes + 1
        from chosen
        where kept.endpoint = chosen.endpoint
            and kept.tenant = chosen.tenant
            and kept.delivery_id = chosen.delivery_id
        returning 1
    )
    select
        (select count(*) from changed),
        (select count(*) from chosen),
        (select extract(epoch from max(last_failed_at))::float8 from chosen)
"
);

/// At most `$11`.
const DISCARD_ALL: &str = concat!(
    "
    with chosen as materialized (
        select kept.endpoint, kept.tenant, kept.delivery_id, kept.last_failed_at
        from idempotent_webhook.kept_deliveries as kept
        left join idempotent_webhook.kept_endpoints as state using (endpoint)
        where ",
    is_chosen!(),
    "
            and ",
    is_next!(),
    "
        order by kept.last_failed_at
        limit $11
    ),
    -- In the order of the key, so that two of these do not wait for each other in a circle.
    locked as (
        select kept.endpoint, kept.tenant, kept.delivery_id
        from idempotent_webhook.kept_deliveries as kept
        join chosen using (endpoint, tenant, delivery_id)
        left join idempotent_webhook.kept_endpoints as state using (endpoint)
        -- Again, for one that has changed while its lock was waited for.
        where ",
    is_chosen!(),
    "
        order by kept.tenant, kept.delivery_id
        for update of kept
    ),
    discarded as (
        delete from idempotent_webhook.kept_deliveries as kept
        using locked
        where kept.endpoint = locked.endpoint
            and kept.tenant = locked.tenant
            and kept.delivery_id = locked.delivery_id
        returning 1
    )
    select
        (select count(*) from discarded),
        (select count(*) from chosen),
        (select extract(epoch from max(last_failed_at))::float8 from chosen)
"
);

/// At most `$11` of those that were processed before the change began, `$12` ago. Locks them.
const CHOOSE_PROCESSED: &str = concat!(
    "
    select kept.tenant, kept.delivery_id
    from idempotent_webhook.kept_deliveries as kept
    left join idempotent_webhook.kept_endpoints as state using (endpoint)
    where kept.state = 'processed'
        and kept.processed_at <= now() - $12
        and ",
    is_chosen!(),
    "
        and $10::float8 is null
    order by kept.processed_at
    limit $11
    for update of kept skip locked
"
);

const LOCK_PROCESSED: &str = "
    select tenant, delivery_id
    from idempotent_webhook.kept_deliveries
    where endpoint = $1 and tenant = $2 and delivery_id = $3 and state = 'processed'
    for update
";

const IS_PROCESSED: &str = "
    select exists (
        select
        from idempotent_webhook.deliveries
        where endpoint = $1 and tenant = coalesce($2, '') and delivery_id = $3
    )
";

/// Which kept deliveries.
///
/// ```
/// use idempotent_webhook::recovery::{Filter, KeptState};
///
/// let timeouts = Filter::new().state(KeptState::Dead).reason_contains("took longer");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Filter {
    state: Option<&'static str>,
    event_type: Option<String>,
    reason: Option<String>,
    /// As in the column `reason_group`.
    pub(crate) reason_group: Option<String>,
    failed_before: Option<SystemTime>,
    processed_from: Option<SystemTime>,
    processed_until: Option<SystemTime>,
}

impl Filter {
    /// All that are not processed.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only those in this state.
    #[must_use]
    pub fn state(mut self, state: KeptState) -> Self {
        self.state = Some(state.as_str());
        self
    }

    /// Only those that are run again, now or once their endpoint is resumed.
    #[cfg(feature = "dashboard")]
    pub(crate) fn due_or_paused(mut self) -> Self {
        self.state = Some("due or paused");
        self
    }

    /// Only those of this event type.
    #[must_use]
    pub fn event_type(mut self, event_type: impl Into<String>) -> Self {
        self.event_type = Some(event_type.into());
        self
    }

    /// Only those whose last reason has this text.
    #[must_use]
    pub fn reason_contains(mut self, text: impl Into<String>) -> Self {
        self.reason = Some(text.into());
        self
    }

    /// Only those whose last attempt failed at this time or before. So a retry of what one has seen
    /// leaves out what has failed since.
    #[must_use]
    pub fn failed_before(mut self, time: SystemTime) -> Self {
        self.failed_before = Some(time);
        self
    }

    /// Only those that were processed at this time or after it.
    #[must_use]
    pub fn processed_from(mut self, time: SystemTime) -> Self {
        self.processed_from = Some(time);
        self
    }

    /// Only those that were processed before this time.
    #[must_use]
    pub fn processed_until(mut self, time: SystemTime) -> Self {
        self.processed_until = Some(time);
        self
    }

    /// The first nine values of a statement with `is_chosen`.
    fn bind<'q>(&'q self, sql: &'static str, of: Of<'q>) -> Query<'q, Postgres, PgArguments> {
        sqlx::query(sql)
            .bind(of.endpoint)
            .bind(of.tenant)
            .bind(self.state)
            .bind(&self.event_type)
            .bind(&self.reason)
            .bind(&self.reason_group)
            .bind(self.failed_before.map(unix_time))
            .bind(self.processed_from.map(unix_time))
            .bind(self.processed_until.map(unix_time))
    }
}

/// A delivery that is kept, or whose failure is recorded.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct KeptDelivery {
    /// The tenant, where there is one.
    pub tenant: Option<String>,
    /// The delivery id.
    pub delivery_id: String,
    /// The event type, if it has one.
    pub event_type: Option<String>,
    /// What is to become of it.
    pub state: KeptState,
    /// How many attempts there have been, those of the provider included.
    pub attempts: u32,
    /// When the first request of it came.
    pub first_received_at: SystemTime,
    /// When the last attempt failed, if one has.
    pub last_failed_at: Option<SystemTime>,
    /// When the next attempt is due.
    pub next_attempt_at: Option<SystemTime>,
    /// When it was processed, if it was and its request stays.
    pub processed_at: Option<SystemTime>,
    /// The last answer, if an attempt has failed.
    pub status: Option<u16>,
    /// Why the last attempt failed.
    pub reason: Option<String>,
}

/// The result of a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Retried {
    /// It is due now, with a new schedule.
    Due,
    /// It was processed meanwhile, so there is nothing to do.
    Processed,
    /// There is no such delivery that could be run again, or it is due or running already.
    Unchanged,
}

/// The key of an endpoint's deliveries: its name, and the tenant if only its deliveries are meant.
#[derive(Clone, Copy)]
pub(crate) struct Of<'a> {
    pub(crate) endpoint: &'a str,
    pub(crate) tenant: Option<&'a str>,
}

pub(crate) async fn list(
    pool: &PgPool,
    of: Of<'_>,
    filter: &Filter,
    limit: u32,
) -> sqlx::Result<Vec<KeptDelivery>> {
    let mut tx = pool.begin_with(BEGIN_APART).await?;
    plan_for_values(&mut tx).await?;
    let rows = filter
        .bind(LIST, of)
        .bind(i64::from(limit))
        .fetch_all(&mut *tx)
        .await?;
    tx.commit().await?;
    rows.iter().map(read).collect()
}

fn read(row: &PgRow) -> sqlx::Result<KeptDelivery> {
    let time = |column| -> sqlx::Result<Option<SystemTime>> {
        Ok(row.try_get::<Option<f64>, _>(column)?.map(from_unix_time))
    };
    let key_tenant: String = row.try_get("tenant")?;
    let tenant: Option<String> = row.try_get("tenant_name")?;
    Ok(KeptDelivery {
        tenant: tenant.or((!key_tenant.is_empty()).then_some(key_tenant)),
        delivery_id: row.try_get("delivery_id")?,
        event_type: row.try_get("event_type")?,
        state: KeptState::read(row.try_get("state")?)?,
        attempts: row.try_get::<i32, _>("attempts")?.max(0).cast_unsigned(),
        first_received_at: from_unix_time(row.try_get("first_received_at")?),
        last_failed_at: time("last_failed_at")?,
        next_attempt_at: time("next_attempt_at")?,
        processed_at: time("processed_at")?,
        status: row
            .try_get::<Option<i16>, _>("status")?
            .map(i16::cast_unsigned),
        reason: row.try_get("reason")?,
    })
}

/// How many there are, at most `limit`.
#[cfg(feature = "dashboard")]
pub(crate) async fn count(
    connection: &mut PgConnection,
    of: Of<'_>,
    filter: &Filter,
    limit: i64,
) -> sqlx::Result<i64> {
    let counted = filter.bind(COUNT, of).bind(limit);
    counted.fetch_one(connection).await?.try_get(0)
}

/// A change of many deliveries, a batch at a time: state by state, in the order of the last failures.
pub(crate) struct Batches<'a> {
    change: Change,
    of: Of<'a>,
    /// Of one state.
    filter: Filter,
    /// The other states, the next one last.
    later: Vec<&'static str>,
    started: Instant,
    /// The last failure up to where all of the state is changed, in Unix seconds. Without one, those
    /// are next that have never failed.
    after: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Retry,
    Discard,
    Reprocess,
}

/// A batch that is changed, but not committed yet.
#[must_use = "the next one is that after the one `committed`"]
pub(crate) struct Batch {
    /// How many.
    pub(crate) changed: u64,
    /// Whether there may be more after it.
    pub(crate) has_more: bool,
    /// Whether as many were chosen as there may be in a batch. Some of them may have vanished since.
    is_full: bool,
    last_failed_at: Option<f64>,
}

impl<'a> Batches<'a> {
    pub(crate) fn new(change: Change, of: Of<'a>, filter: &Filter) -> Self {
        let mut filter = filter.clone();
        let mut later = Vec::new();
        // A delivery may become due meanwhile, and then dead.
        match change {
            Change::Reprocess => filter.state = Some(KeptState::Processed.as_str()),
            Change::Retry if filter.state.is_none() => {
                filter.state = Some("due or paused");
                later = vec!["dead"];
            }
            Change::Discard if filter.state.is_none() => {
                filter.state = Some("recorded");
                later = vec!["dead", "due or paused"];
            }
            Change::Retry | Change::Discard => {}
        }
        Self {
            after: first(&filter),
            change,
            of,
            filter,
            later,
            started: Instant::now(),
        }
    }

    /// Changes the next batch, in a transaction at `read committed`.
    pub(crate) async fn next(&self, tx: &mut PgConnection) -> sqlx::Result<Batch> {
        plan_for_values(tx).await?;
        let bind = |sql| self.filter.bind(sql, self.of).bind(self.after).bind(BATCH);
        let elapsed = interval(self.started.elapsed());
        let statement = match self.change {
            Change::Retry => bind(RETRY_ALL).bind(elapsed),
            Change::Discard => bind(DISCARD_ALL),
            Change::Reprocess => {
                let chosen = bind(CHOOSE_PROCESSED).bind(elapsed).fetch_all(&mut *tx);
                let chosen = Keys::read(&chosen.await?)?;
                let changed = reprocess_chosen(&chosen, self.of, tx).await?;
                return Ok(self.batch(changed, chosen.len() as u64, None));
            }
        };
        let row = statement.fetch_one(tx).await?;
        let (changed, chosen): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        let last_failed_at = row.try_get(2)?;
        Ok(self.batch(
            changed.unsigned_abs(),
            chosen.unsigned_abs(),
            last_failed_at,
        ))
    }

    fn batch(&self, changed: u64, chosen: u64, last_failed_at: Option<f64>) -> Batch {
        let is_full = chosen == BATCH.unsigned_abs();
        Batch {
            changed,
            has_more: is_full || self.is_followed(),
            is_full,
            last_failed_at,
        }
    }

    /// Whether there is more to do after the last full batch of this kind.
    fn is_followed(&self) -> bool {
        let has_failed_ones = self.change != Change::Reprocess && self.after.is_none();
        has_failed_ones || !self.later.is_empty()
    }

    /// All batches, each in a transaction of its own. Returns how many were changed.
    pub(crate) async fn run(mut self, pool: &PgPool) -> sqlx::Result<u64> {
        let mut all = 0;
        loop {
            let mut tx = pool.begin_with(BEGIN_APART).await?;
            let batch = self.next(&mut tx).await?;
            tx.commit().await?;
            self.committed(&batch);
            all += batch.changed;
            if !batch.has_more {
                return Ok(all);
            }
        }
    }

    /// Goes on after this batch.
    pub(crate) fn committed(&mut self, batch: &Batch) {
        match (self.after, batch.is_full) {
            (None, true) => {}
            (Some(_), true) => self.after = batch.last_failed_at,
            (None, false) if self.change == Change::Reprocess => {}
            (None, false) => self.after = Some(0.0),
            (Some(_), false) => {
                if let Some(state) = self.later.pop() {
                    self.filter.state = Some(state);
                    self.after = first(&self.filter);
                }
            }
        }
    }
}

/// Where the first batch begins. What has never failed has not failed before a time, either.
fn first(filter: &Filter) -> Option<f64> {
    filter.failed_before.map(|_| 0.0)
}

async fn plan_for_values(tx: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query(PLAN_FOR_VALUES).execute(tx).await.map(drop)
}

/// Returns whether it will be run again.
pub(crate) async fn retry(pool: &PgPool, of: Of<'_>, delivery_id: &str) -> sqlx::Result<bool> {
    let mut tx = pool.begin_with(BEGIN_APART).await?;
    let retried = one(include_str!("kept/retry.sql"), of, delivery_id)
        .fetch_optional(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok(retried.is_some())
}

/// A statement on one delivery.
fn one<'q>(
    sql: &'static str,
    of: Of<'q>,
    delivery_id: &'q str,
) -> Query<'q, Postgres, PgArguments> {
    sqlx::query(sql)
        .bind(of.endpoint)
        .bind(of.tenant.unwrap_or_default())
        .bind(delivery_id)
}

pub(crate) async fn is_processed(
    pool: &PgPool,
    of: Of<'_>,
    delivery_id: &str,
) -> sqlx::Result<bool> {
    let mut tx = pool.begin_with(BEGIN_APART).await?;
    let processed = sqlx::query_scalar(IS_PROCESSED)
        .bind(of.endpoint)
        .bind(of.tenant)
        .bind(delivery_id)
        .fetch_one(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok(processed)
}

/// Returns whether it was kept, and not processed.
pub(crate) async fn discard(pool: &PgPool, of: Of<'_>, delivery_id: &str) -> sqlx::Result<bool> {
    let mut tx = pool.begin_with(BEGIN_APART).await?;
    // An attempt under way may commit.
    one(include_str!("kept/lock.sql"), of, delivery_id)
        .bind("0")
        .execute(&mut *tx)
        .await?;
    let discarded = one(include_str!("kept/discard.sql"), of, delivery_id)
        .fetch_optional(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok(discarded.is_some())
}

/// Returns whether its request was there, and it is run again.
pub(crate) async fn reprocess(pool: &PgPool, of: Of<'_>, delivery_id: &str) -> sqlx::Result<bool> {
    let mut tx = pool.begin_with(BEGIN_APART).await?;
    let locked = one(LOCK_PROCESSED, of, delivery_id).fetch_all(&mut *tx);
    let locked = Keys::read(&locked.await?)?;
    let reprocessed = reprocess_chosen(&locked, of, &mut tx).await?;
    tx.commit().await?;
    Ok(reprocessed > 0)
}

/// Makes processed deliveries due whose rows are locked. Returns how many.
async fn reprocess_chosen(chosen: &Keys, of: Of<'_>, tx: &mut PgConnection) -> sqlx::Result<u64> {
    chosen.delete_claims(of.endpoint, None, tx).await?;
    let reprocess = sqlx::query(include_str!("kept/reprocess.sql"));
    let reprocessed = chosen.bind(reprocess, of.endpoint).execute(tx).await?;
    Ok(reprocessed.rows_affected())
}

pub(crate) async fn pause(pool: &PgPool, endpoint: &str) -> sqlx::Result<()> {
    on_endpoint(pool, include_str!("kept/pause.sql"), endpoint).await
}

pub(crate) async fn resume(pool: &PgPool, endpoint: &str) -> sqlx::Result<()> {
    on_endpoint(pool, include_str!("kept/resume.sql"), endpoint).await
}

async fn on_endpoint(pool: &PgPool, statement: &'static str, endpoint: &str) -> sqlx::Result<()> {
    let mut tx = pool.begin_with(BEGIN_APART).await?;
    sqlx::query(statement)
        .bind(endpoint)
        .execute(&mut *tx)
        .await?;
    tx.commit().await
}
