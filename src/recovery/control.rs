//! What operators do with kept deliveries.

use std::time::{Duration, SystemTime};

use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{PgConnection, PgPool, Postgres, Row};
use tokio::time::Instant;

use super::keep::{interval, unix_time};
use super::served;
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

/// Of the endpoint `$1`, the tenant `$2` if it is given, and a [`Filter`]. The state as the table
/// has it comes first, for the index.
macro_rules! is_chosen {
    () => {
        "kept.endpoint = $1
        and ($2::text is null or kept.tenant = $2)
        and (
            $3::text is null
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
        and ($7::float8 is null or kept.last_failed_at <= to_timestamp($7))"
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
        ",
    state!(),
    " as state
    from idempotent_webhook.kept_deliveries as kept
    left join idempotent_webhook.kept_endpoints as state using (endpoint)
    where ",
    is_chosen!(),
    "
        and not exists (
            select
            from idempotent_webhook.deliveries
            where deliveries.endpoint = kept.endpoint
                and deliveries.tenant = kept.tenant
                and deliveries.delivery_id = kept.delivery_id
        )
    order by kept.delivery_id, kept.tenant
    limit $8
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
        limit $8
    ) as chosen
"
);

/// Those of a batch and after the one before it, `$8`: in the order of their last failures, which an
/// index has, so that no batch reads what those before it have changed. Without one, those that have
/// never failed.
macro_rules! is_next {
    () => {
        "case
            when $8::float8 is null then kept.last_failed_at is null
            else kept.last_failed_at >= to_timestamp($8)
        end"
    };
}

/// What can be run again, and is not due at once already.
macro_rules! is_retriable {
    () => {
        "kept.state <> 'recorded'
        and (kept.state = 'dead' or kept.next_attempt_at > now())
        and (kept.running_until is null or kept.running_until <= now())"
    };
}

/// Runs what is `chosen` again, with a new schedule.
macro_rules! retry {
    () => {
        "update idempotent_webhook.kept_deliveries as kept
        set state = 'due', retries = 0, next_attempt_at = now(), running_until = null
        from chosen
        where kept.endpoint = chosen.endpoint
            and kept.tenant = chosen.tenant
            and kept.delivery_id = chosen.delivery_id
        returning chosen.last_failed_at"
    };
}

const RETRY: &str = concat!(
    "
    with chosen as (
        select kept.endpoint, kept.tenant, kept.delivery_id, kept.last_failed_at
        from idempotent_webhook.kept_deliveries as kept
        join idempotent_webhook.kept_requests as request using (endpoint, tenant, delivery_id)
        where kept.endpoint = $1 and kept.tenant = coalesce($2, '') and kept.delivery_id = $3
            and ",
    is_retriable!(),
    "
        for update of kept skip locked
    )
    ",
    retry!(),
);

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
            and ",
    is_retriable!(),
    "
            -- Those of a batch before that have failed again.
            and (kept.last_failed_at is null or kept.last_failed_at < now() - $10)
        order by kept.last_failed_at
        limit $9
        for update of kept skip locked
    ),
    changed as (
        ",
    retry!(),
    "
    )
    select count(*), extract(epoch from max(last_failed_at))::float8 from changed
"
);

const IS_PROCESSED: &str = "
    select exists (
        select
        from idempotent_webhook.deliveries
        where endpoint = $1 and tenant = coalesce($2, '') and delivery_id = $3
    )
";

/// Deletes the requests of what is `discarded`.
macro_rules! delete_requests {
    () => {
        "
    request as (
        delete from idempotent_webhook.kept_requests as request
        using discarded
        where request.endpoint = discarded.endpoint
            and request.tenant = discarded.tenant
            and request.delivery_id = discarded.delivery_id
    )"
    };
}

const DISCARD: &str = concat!(
    "
    with discarded as (
        delete from idempotent_webhook.kept_deliveries
        where endpoint = $1 and tenant = coalesce($2, '') and delivery_id = $3
        returning endpoint, tenant, delivery_id
    ),",
    delete_requests!(),
    "
    select from discarded
"
);

const DISCARD_ALL: &str = concat!(
    "
    with chosen as (
        select kept.endpoint, kept.tenant, kept.delivery_id
        from idempotent_webhook.kept_deliveries as kept
        left join idempotent_webhook.kept_endpoints as state using (endpoint)
        where ",
    is_chosen!(),
    "
            and ",
    is_next!(),
    "
        order by kept.last_failed_at
        limit $9
    ),
    -- In the order of the key, as the end of attempts does, so that the two do not wait for each other.
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
        returning kept.endpoint, kept.tenant, kept.delivery_id, kept.last_failed_at
    ),",
    delete_requests!(),
    "
    select count(*), extract(epoch from max(last_failed_at))::float8 from discarded
"
);

const PAUSE: &str = "
    insert into idempotent_webhook.kept_endpoints (endpoint, paused_at)
    values ($1, now())
    on conflict (endpoint) do update
    set paused_at = coalesce(kept_endpoints.paused_at, now())
";

const RESUME: &str = "
    update idempotent_webhook.kept_endpoints
    set paused_at = null, failed_ids = '{}', probe_at = null
    where endpoint = $1
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
}

impl Filter {
    /// All of them.
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

    /// The first seven values of a statement with `is_chosen`.
    fn bind<'q>(&'q self, sql: &'static str, of: Of<'q>) -> Query<'q, Postgres, PgArguments> {
        sqlx::query(sql)
            .bind(of.endpoint)
            .bind(of.tenant)
            .bind(self.state)
            .bind(&self.event_type)
            .bind(&self.reason)
            .bind(&self.reason_group)
            .bind(self.failed_before.map(unix_time))
    }
}

/// What is to become of a kept delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeptState {
    /// Nothing: its request is not kept.
    Recorded,
    /// It is run again.
    Due,
    /// It is run again once its endpoint is resumed.
    Paused,
    /// It is not run again unless an operator says so.
    Dead,
}

impl KeptState {
    /// The name, such as `due`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Due => "due",
            Self::Paused => "paused",
            Self::Dead => "dead",
        }
    }
}

/// A delivery that is not processed yet.
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
    let time = |seconds: f64| {
        SystemTime::UNIX_EPOCH + Duration::try_from_secs_f64(seconds).unwrap_or_default()
    };
    let state: String = row.try_get("state")?;
    let key_tenant: String = row.try_get("tenant")?;
    let tenant: Option<String> = row.try_get("tenant_name")?;
    Ok(KeptDelivery {
        tenant: tenant.or((!key_tenant.is_empty()).then_some(key_tenant)),
        delivery_id: row.try_get("delivery_id")?,
        event_type: row.try_get("event_type")?,
        state: match &*state {
            "due" => KeptState::Due,
            "paused" => KeptState::Paused,
            "dead" => KeptState::Dead,
            _ => KeptState::Recorded,
        },
        attempts: row.try_get::<i32, _>("attempts")?.max(0).cast_unsigned(),
        first_received_at: time(row.try_get("first_received_at")?),
        last_failed_at: row.try_get::<Option<f64>, _>("last_failed_at")?.map(time),
        next_attempt_at: row.try_get::<Option<f64>, _>("next_attempt_at")?.map(time),
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
}

/// A batch that is changed, but not committed yet.
#[must_use = "the next one is that after the one `committed`"]
pub(crate) struct Batch {
    /// How many.
    pub(crate) changed: u64,
    /// Whether there may be more after it.
    pub(crate) has_more: bool,
    is_full: bool,
    last_failed_at: Option<f64>,
}

impl<'a> Batches<'a> {
    pub(crate) fn new(change: Change, of: Of<'a>, filter: &Filter) -> Self {
        let mut filter = filter.clone();
        let mut later = Vec::new();
        // A delivery may become due meanwhile, and then dead.
        if filter.state.is_none() {
            later = vec!["dead", "due or paused"];
            match change {
                Change::Retry => filter.state = later.pop(),
                Change::Discard => filter.state = Some("recorded"),
            }
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
        let sql = match self.change {
            Change::Retry => RETRY_ALL,
            Change::Discard => DISCARD_ALL,
        };
        let mut statement = self.filter.bind(sql, self.of).bind(self.after).bind(BATCH);
        if self.change == Change::Retry {
            statement = statement.bind(interval(self.started.elapsed()));
        }
        let row = statement.fetch_one(tx).await?;
        let changed: i64 = row.try_get(0)?;
        let is_full = changed == BATCH;
        Ok(Batch {
            changed: changed.unsigned_abs(),
            has_more: is_full || self.after.is_none() || !self.later.is_empty(),
            is_full,
            last_failed_at: row.try_get(1)?,
        })
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

    /// Goes on after this batch, and has recovery look for what is due now.
    pub(crate) fn committed(&mut self, batch: &Batch) {
        match (self.after, batch.is_full) {
            (None, true) => {}
            (None, false) => self.after = Some(0.0),
            (Some(_), true) => self.after = batch.last_failed_at,
            (Some(_), false) => {
                if let Some(state) = self.later.pop() {
                    self.filter.state = Some(state);
                    self.after = first(&self.filter);
                }
            }
        }
        if self.change == Change::Retry {
            served::notify();
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
    let retried = sqlx::query(RETRY)
        .bind(of.endpoint)
        .bind(of.tenant)
        .bind(delivery_id)
        .fetch_optional(&mut *tx)
        .await?;
    tx.commit().await?;
    served::notify();
    Ok(retried.is_some())
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

/// Returns whether it was kept.
pub(crate) async fn discard(pool: &PgPool, of: Of<'_>, delivery_id: &str) -> sqlx::Result<bool> {
    let mut tx = pool.begin_with(BEGIN_APART).await?;
    let discarded = sqlx::query(DISCARD)
        .bind(of.endpoint)
        .bind(of.tenant)
        .bind(delivery_id)
        .fetch_optional(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok(discarded.is_some())
}

pub(crate) async fn pause(pool: &PgPool, endpoint: &str) -> sqlx::Result<()> {
    on_endpoint(pool, PAUSE, endpoint).await
}

pub(crate) async fn resume(pool: &PgPool, endpoint: &str) -> sqlx::Result<()> {
    on_endpoint(pool, RESUME, endpoint).await?;
    served::notify();
    Ok(())
}

async fn on_endpoint(pool: &PgPool, statement: &'static str, endpoint: &str) -> sqlx::Result<()> {
    let mut tx = pool.begin_with(BEGIN_APART).await?;
    sqlx::query(statement)
        .bind(endpoint)
        .execute(&mut *tx)
        .await?;
    tx.commit().await
}
