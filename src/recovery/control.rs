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

/// Of the endpoint `$1`, the tenant `$2` if it is given, and a [`Filter`], to `$11`. The state as the table
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
        and ($9::float8 is null or kept.processed_at < to_timestamp($9))
        and ($10::text[] is null or coalesce(kept.tenant_name, kept.tenant) = any($10))
        and ($11::float8 is null or kept.last_failed_at >= to_timestamp($11))"
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
    limit $12
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
        limit $12
    ) as chosen
"
);

/// Keyset: those after the batch before, which ended at `$12` to `$14`, in the order of their last failures,
/// which an index has. So no batch reads what those before it have changed, and none changes it again. Without
/// `$12`, those that have never failed.
macro_rules! is_next {
    () => {
        "case
            when $12::float8 is null then
                kept.last_failed_at is null and (kept.delivery_id, kept.tenant) > ($13, $14)
            else
                (kept.last_failed_at, kept.delivery_id, kept.tenant) > (to_timestamp($12), $13, $14)
        end"
    };
}

/// At most `$15` that nobody has locked and that have not come or failed since the change began, `$16` ago.
macro_rules! choose {
    ($join:literal, $condition:literal) => {
        concat!(
            "
    with chosen as (
        select kept.endpoint, kept.tenant, kept.delivery_id, kept.last_failed_at
        from idempotent_webhook.kept_deliveries as kept
        ",
            $join,
            "
        left join idempotent_webhook.kept_endpoints as state using (endpoint)
        where ",
            is_chosen!(),
            "
            and ",
            is_next!(),
            "
            and kept.first_received_at < now() - $16
            and (kept.last_failed_at is null or kept.last_failed_at < now() - $16)
            ",
            $condition,
            "
        order by kept.last_failed_at, kept.delivery_id, kept.tenant
        limit $15
        for update of kept skip locked
    ),"
        )
    };
}

/// The keys of what was changed, how many were chosen, and the last of those.
macro_rules! result {
    () => {
        "
    select
        changed.tenants, changed.ids, (select count(*) from chosen) as number,
        extract(epoch from last.last_failed_at)::float8 as last_failed_at,
        last.delivery_id as last_id, last.tenant as last_tenant
    from (
        select
            coalesce(array_agg(tenant), '{}') as tenants,
            coalesce(array_agg(delivery_id), '{}') as ids
        from changed
    ) as changed
    left join (
        select last_failed_at, delivery_id, tenant
        from chosen
        order by last_failed_at desc, delivery_id desc, tenant desc
        limit 1
    ) as last on true
"
    };
}

const RETRY_ALL: &str = concat!(
    choose!(
        "join idempotent_webhook.kept_requests as request using (endpoint, tenant, delivery_id)",
        "and (kept.state = 'dead' or kept.state = 'due' and kept.next_attempt_at > now())
            and (kept.taken_at is null or kept.taken_at < now() - interval '5 seconds')"
    ),
    "
    changed as (
        update idempotent_webhook.kept_deliveries as kept
        set state = 'due', retries = 0, next_attempt_at = now(), taken_at = null, takes = takes + 1
        from chosen
        where kept.endpoint = chosen.endpoint
            and kept.tenant = chosen.tenant
            and kept.delivery_id = chosen.delivery_id
        returning kept.tenant, kept.delivery_id
    )",
    result!(),
);

const DISCARD_ALL: &str = concat!(
    choose!("", ""),
    "
    changed as (
        delete from idempotent_webhook.kept_deliveries as kept
        using chosen
        where kept.endpoint = chosen.endpoint
            and kept.tenant = chosen.tenant
            and kept.delivery_id = chosen.delivery_id
        returning kept.tenant, kept.delivery_id
    )",
    result!(),
);

/// At most `$12` of those that were processed before the change began, `$13` ago. Locks them.
const CHOOSE_PROCESSED: &str = concat!(
    "
    select kept.tenant, kept.delivery_id
    from idempotent_webhook.kept_deliveries as kept
    left join idempotent_webhook.kept_endpoints as state using (endpoint)
    where kept.state = 'processed'
        and kept.processed_at <= now() - $13
        and ",
    is_chosen!(),
    "
    order by kept.processed_at
    limit $12
    for update of kept skip locked
"
);

const LOCK_PROCESSED: &str = "
    select tenant, delivery_id
    from idempotent_webhook.kept_deliveries
    where endpoint = $1 and tenant = $2 and delivery_id = $3 and state = 'processed'
    for update
";

/// Waits for whoever changes what is kept of the delivery, as a reprocess does.
const LOCK_KEPT: &str = "
    select 1
    from idempotent_webhook.kept_deliveries
    where endpoint = $1 and tenant = $2 and delivery_id = $3
    for update
";

const DELETE_KEPT: &str = "
    delete from idempotent_webhook.kept_deliveries
    where endpoint = $1 and tenant = $2 and delivery_id = $3
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
    failed_from: Option<SystemTime>,
    failed_before: Option<SystemTime>,
    processed_from: Option<SystemTime>,
    processed_until: Option<SystemTime>,
    /// By name, also where ids are not separate by tenant.
    pub(crate) tenants: Option<Vec<String>>,
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

    /// Only those whose last attempt failed at this time or after it.
    #[must_use]
    pub fn failed_from(mut self, time: SystemTime) -> Self {
        self.failed_from = Some(time);
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

    /// The first eleven values of a statement with `is_chosen`.
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
            .bind(&self.tenants)
            .bind(self.failed_from.map(unix_time))
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
    plan_for_values(connection).await?;
    let counted = filter.bind(COUNT, of).bind(limit);
    counted.fetch_one(connection).await?.try_get(0)
}

/// A change of many deliveries, a batch at a time: state by state, in the order of the last failures.
///
/// Deliveries that somebody has locked are left out: no batch waits, and none holds its locks while it
/// waits. A lock may be that of another change, so passes of a discard follow until one changes nothing.
/// What is left then has an attempt under way. Others have one pass: what they have changed may be given
/// back at once, and would be changed and counted again.
pub(crate) struct Batches<'a> {
    change: Change,
    of: Of<'a>,
    /// Of the state that is changed now.
    filter: Filter,
    /// All states of a pass.
    states: Vec<&'static str>,
    /// How many of them are done in this pass.
    done: usize,
    started: Instant,
    /// Up to where all of the state is changed. Processed deliveries have no such place: what is changed is
    /// not processed any more.
    after: Place,
    /// Whether this pass has changed anything.
    has_changed: bool,
    is_over: bool,
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
    /// What was changed.
    pub(crate) changed: Keys,
    /// Whether as many were chosen as there may be in a batch. Some of them may have vanished since.
    is_full: bool,
    last: Place,
}

/// A place in the order in which deliveries are changed.
#[derive(Clone, Default)]
struct Place {
    /// In Unix seconds. Without it, a place among those that have never failed.
    failed_at: Option<f64>,
    id: String,
    tenant: String,
}

impl<'a> Batches<'a> {
    pub(crate) fn new(change: Change, of: Of<'a>, filter: &Filter) -> Self {
        let mut filter = filter.clone();
        // A delivery may become due meanwhile, and then dead.
        let states = match (change, filter.state) {
            (Change::Reprocess, _) => vec![KeptState::Processed.as_str()],
            (_, Some(state)) => vec![state],
            (Change::Retry, None) => vec!["due or paused", "dead"],
            (Change::Discard, None) => vec!["recorded", "due or paused", "dead"],
        };
        filter.state = states.first().copied();
        Self {
            after: first(&filter),
            change,
            of,
            filter,
            states,
            done: 0,
            started: Instant::now(),
            has_changed: false,
            is_over: false,
        }
    }

    /// Changes the next batch, in a transaction at `read committed`.
    pub(crate) async fn next(&self, tx: &mut PgConnection) -> sqlx::Result<Batch> {
        plan_for_values(tx).await?;
        let elapsed = interval(self.started.elapsed());
        let statement = match self.change {
            Change::Retry => RETRY_ALL,
            Change::Discard => DISCARD_ALL,
            Change::Reprocess => {
                let chosen = self.filter.bind(CHOOSE_PROCESSED, self.of);
                let chosen = chosen.bind(BATCH).bind(elapsed).fetch_all(&mut *tx);
                let changed = Keys::read(&chosen.await?)?;
                reprocess_chosen(&changed, self.of, tx).await?;
                return Ok(Batch {
                    is_full: changed.len() as u64 == BATCH.unsigned_abs(),
                    changed,
                    last: Place::default(),
                });
            }
        };
        let statement = self
            .filter
            .bind(statement, self.of)
            .bind(self.after.failed_at)
            .bind(&self.after.id)
            .bind(&self.after.tenant)
            .bind(BATCH)
            .bind(elapsed);
        let row = statement.fetch_one(&mut *tx).await?;
        let chosen: i64 = row.try_get("number")?;
        let changed = Keys::zip(row.try_get("tenants")?, row.try_get("ids")?);
        if self.change == Change::Discard {
            set_aside(&changed, self.of, tx).await?;
        }
        Ok(Batch {
            changed,
            is_full: chosen == BATCH,
            last: Place {
                failed_at: row.try_get("last_failed_at")?,
                id: row.try_get::<Option<_>, _>("last_id")?.unwrap_or_default(),
                tenant: row
                    .try_get::<Option<_>, _>("last_tenant")?
                    .unwrap_or_default(),
            },
        })
    }

    /// All batches, each in a transaction of its own. Returns how many were changed.
    pub(crate) async fn run(mut self, pool: &PgPool) -> sqlx::Result<u64> {
        let mut all = 0;
        while !self.is_over() {
            let mut tx = pool.begin_with(BEGIN_APART).await?;
            let batch = self.next(&mut tx).await?;
            tx.commit().await?;
            self.committed(&batch);
            all += batch.changed.len() as u64;
        }
        Ok(all)
    }

    /// Whether all passes are done.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Goes on after this batch.
    pub(crate) fn committed(&mut self, batch: &Batch) {
        self.has_changed |= batch.changed.len() > 0;
        match (self.after.failed_at, batch.is_full) {
            (_, true) => self.after = batch.last.clone(),
            (None, false) if self.change != Change::Reprocess => self.after = Place::first_failed(),
            (_, false) => self.end_state(),
        }
    }

    fn end_state(&mut self) {
        self.done += 1;
        if self.done == self.states.len() {
            let has_changed = std::mem::take(&mut self.has_changed);
            self.is_over = self.change != Change::Discard || !has_changed;
            self.done = 0;
        }
        self.filter.state = self.states.get(self.done).copied();
        self.after = first(&self.filter);
    }
}

impl Place {
    fn first_failed() -> Self {
        Self {
            failed_at: Some(0.0),
            ..Self::default()
        }
    }
}

/// Where the first batch begins. What has never failed has not failed before or after a time, either.
fn first(filter: &Filter) -> Place {
    match (filter.failed_from, filter.failed_before) {
        (None, None) => Place::default(),
        _ => Place::first_failed(),
    }
}

async fn plan_for_values(tx: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query(PLAN_FOR_VALUES).execute(tx).await.map(drop)
}

/// Returns whether it will be run again. Not one that was processed.
pub(crate) async fn retry(
    tx: &mut PgConnection,
    of: Of<'_>,
    delivery_id: &str,
) -> sqlx::Result<bool> {
    let retried = one(include_str!("kept/retry.sql"), of, delivery_id)
        .fetch_optional(tx)
        .await?;
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
    tx: &mut PgConnection,
    of: Of<'_>,
    delivery_id: &str,
) -> sqlx::Result<bool> {
    sqlx::query_scalar(IS_PROCESSED)
        .bind(of.endpoint)
        .bind(of.tenant)
        .bind(delivery_id)
        .fetch_one(tx)
        .await
}

/// Returns whether it was kept, and not processed. Waits for an attempt under way, for at most so many
/// milliseconds: 0 is no limit.
pub(crate) async fn discard(
    tx: &mut PgConnection,
    of: Of<'_>,
    delivery_id: &str,
    lock_timeout: &str,
) -> sqlx::Result<bool> {
    // The attempt may commit.
    one(include_str!("kept/lock.sql"), of, delivery_id)
        .bind(lock_timeout)
        .execute(&mut *tx)
        .await?;
    let discarded = one(include_str!("kept/discard.sql"), of, delivery_id)
        .fetch_all(&mut *tx)
        .await?;
    let discarded = Keys::read(&discarded)?;
    set_aside(&discarded, of, tx).await?;
    Ok(discarded.len() > 0)
}

/// Reconciliation leaves these deliveries alone.
async fn set_aside(keys: &Keys, of: Of<'_>, tx: &mut PgConnection) -> sqlx::Result<()> {
    let set_aside = sqlx::query(include_str!("kept/set_aside.sql"));
    let set_aside = keys.bind(set_aside, of.endpoint);
    set_aside.execute(tx).await.map(drop)
}

/// Returns whether its request was there, and it is run again.
pub(crate) async fn reprocess(
    tx: &mut PgConnection,
    of: Of<'_>,
    delivery_id: &str,
) -> sqlx::Result<bool> {
    let locked = one(LOCK_PROCESSED, of, delivery_id).fetch_all(&mut *tx);
    let locked = Keys::read(&locked.await?)?;
    Ok(reprocess_chosen(&locked, of, tx).await? > 0)
}

/// Whether it was processed, and its request is still there.
#[cfg(feature = "dashboard")]
pub(crate) async fn is_archived(
    tx: &mut PgConnection,
    of: Of<'_>,
    delivery_id: &str,
) -> sqlx::Result<bool> {
    let archived = one(LOCK_PROCESSED, of, delivery_id).fetch_optional(tx);
    Ok(archived.await?.is_some())
}

/// Deletes the claim of a processed delivery, and what is kept of it: it must not run again by itself.
/// Returns whether it was there.
pub(crate) async fn forget(
    tx: &mut PgConnection,
    of: Of<'_>,
    delivery_id: &str,
) -> sqlx::Result<bool> {
    if !is_processed(tx, of, delivery_id).await? {
        return Ok(false);
    }
    // Nobody else's attempt holds it for long, since the delivery is processed.
    one(LOCK_KEPT, of, delivery_id).execute(&mut *tx).await?;
    let claim = Keys::one(of.tenant.unwrap_or_default(), delivery_id);
    let found = claim.delete_claims(of.endpoint, None, &mut *tx).await? > 0;
    if found {
        one(DELETE_KEPT, of, delivery_id).execute(&mut *tx).await?;
        set_aside(&claim, of, tx).await?;
    }
    Ok(found)
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
