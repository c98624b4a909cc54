//! Changes of many deliveries: retry, discard, reprocess and erase, a batch at a time.

use sqlx::{PgConnection, PgPool, Row};

use super::filter::{Filter, is_chosen, plan_for_values};
#[cfg(feature = "dashboard")]
use super::list::count;
use super::{Of, erase_chosen, reprocess_chosen, set_aside};
use crate::recovery::KeptState;
use crate::transaction::{RowKeys, ShortTx};

const NOW: &str = "select extract(epoch from now())::float8";

/// How many deliveries are changed in one transaction.
const BATCH: i64 = 1000;

/// Keyset pagination by the last failure, which is indexed: the rows after `$13` to `$15`, where the previous batch
/// ended. So no batch reads or changes again what an earlier one has changed. Without `$13`, the rows that have
/// never failed.
macro_rules! is_next {
    () => {
        "case
            when $13::float8 is null then
                kept.last_failed_at is null and (kept.delivery_id, kept.tenant) > ($14, $15)
            else
                (kept.last_failed_at, kept.delivery_id, kept.tenant) > (to_timestamp($13), $14, $15)
        end"
    };
}

/// At most `$16` that nobody has locked and that had come, or failed last, before the change began, at `$17`. The
/// time of a failure is that of the database. The time of receipt is that of an application, whose clock may be
/// ahead. So a delivery that has not failed yet had also come if an attempt was due before the change: it is first
/// due when it is written, by the database's clock.
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
            and coalesce(
                kept.last_failed_at, least(kept.first_received_at, kept.next_attempt_at)
            ) < to_timestamp($17)
            ",
            $condition,
            "
        order by kept.last_failed_at, kept.delivery_id, kept.tenant
        limit $16
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
            and (
                kept.taken_by is null
                or not exists (select from idempotent_webhook.processes where number = kept.taken_by)
            )"
    ),
    "
    changed as (
        update idempotent_webhook.kept_deliveries as kept
        set state = 'due', retries = 0, next_attempt_at = now(), taken_by = null, takes = takes + 1,
            unfinished = 0
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

/// Those that are left to erase. Their content is erased by another statement, in the same transaction.
const CHOOSE_TO_ERASE: &str = concat!(
    choose!(
        "",
        "and (kept.state <> 'recorded' or kept.reason is distinct from 'its content was erased')"
    ),
    "
    changed as (select tenant, delivery_id from chosen)",
    result!(),
);

/// At most `$13` of those that were processed before the change began, at `$14`. Locks them.
const CHOOSE_PROCESSED: &str = concat!(
    "
    select kept.tenant, kept.delivery_id
    from idempotent_webhook.kept_deliveries as kept
    left join idempotent_webhook.kept_endpoints as state using (endpoint)
    where kept.state = 'processed'
        and kept.processed_at < to_timestamp($14)
        and ",
    is_chosen!(),
    "
    order by kept.processed_at
    limit $13
    for update of kept skip locked
"
);

/// A change of many deliveries, a batch at a time: state by state, in the order of the last failures.
///
/// Deliveries that somebody has locked are left out, so that no batch waits while it holds locks. A discard and an
/// erasure repeat their passes until one changes nothing, since a lock may be that of another change. The deliveries
/// left then have an attempt under way. A retry and a reprocess have one pass, since a delivery that they
/// have changed may be given back at once, and would be changed and counted again.
pub(crate) struct Batches<'a> {
    change: Change,
    of: Of<'a>,
    /// Of the state that is changed now.
    filter: Filter,
    /// All states of a pass.
    states: Vec<&'static str>,
    /// How many of them are done in this pass.
    done: usize,
    /// When the first batch began, in Unix seconds by the clock of the database.
    started: Option<f64>,
    /// Up to where all deliveries of the state are changed. Processed ones have no such place: once changed,
    /// they are not processed any more.
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
    Erase,
}

impl Change {
    /// Whether what is changed runs again.
    #[cfg(feature = "dashboard")]
    pub(crate) fn makes_due(self) -> bool {
        match self {
            Self::Retry | Self::Reprocess => true,
            Self::Discard | Self::Erase => false,
        }
    }
}

/// A batch that is changed, but not committed yet.
#[must_use = "the next one is that after the one `committed`"]
pub(crate) struct Batch {
    /// What was changed.
    pub(crate) changed: RowKeys,
    /// Whether the batch was full when it was chosen. Some of its deliveries may have vanished since.
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
            (Change::Erase, None) => vec!["recorded", "due or paused", "dead", "processed"],
        };
        filter.state = states.first().copied();
        Self {
            after: first(&filter),
            change,
            of,
            filter,
            states,
            done: 0,
            started: None,
            has_changed: false,
            is_over: false,
        }
    }

    /// Changes the next batch, in a transaction at `read committed`.
    pub(crate) async fn next(&mut self, tx: &mut PgConnection) -> sqlx::Result<Batch> {
        plan_for_values(tx).await?;
        let started = match self.started {
            Some(started) => started,
            None => *self
                .started
                .insert(sqlx::query_scalar(NOW).fetch_one(&mut *tx).await?),
        };
        if self.is_at_processed() {
            return self.next_processed(started, tx).await;
        }
        let statement = match self.change {
            Change::Retry => RETRY_ALL,
            Change::Discard => DISCARD_ALL,
            Change::Erase | Change::Reprocess => CHOOSE_TO_ERASE,
        };
        let statement = self
            .filter
            .bind(statement, self.of)
            .bind(self.after.failed_at)
            .bind(&self.after.id)
            .bind(&self.after.tenant)
            .bind(BATCH)
            .bind(started);
        let row = statement.fetch_one(&mut *tx).await?;
        let chosen: i64 = row.try_get("number")?;
        let changed = RowKeys::zip(row.try_get("tenants")?, row.try_get("ids")?);
        match self.change {
            Change::Discard => set_aside(&changed, self.of, tx).await?,
            Change::Erase => erase_chosen(&changed, self.of.endpoint, tx).await?,
            Change::Retry | Change::Reprocess => {}
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

    /// How many of a filter a change has left out, since they were running or somebody held them: up to `limit`. What was
    /// erased is still there, as one that is recorded.
    #[cfg(feature = "dashboard")]
    pub(crate) async fn left(
        change: Change,
        of: Of<'_>,
        filter: &Filter,
        limit: i64,
        tx: &mut PgConnection,
    ) -> sqlx::Result<i64> {
        let states = match (change, filter.state) {
            (Change::Retry | Change::Reprocess, _) | (Change::Erase, Some("recorded")) => vec![],
            (Change::Erase, None) => vec![Some("due or paused"), Some("dead"), Some("processed")],
            (Change::Discard | Change::Erase, state) => vec![state],
        };
        let mut left = 0;
        for state in states {
            let mut filter = filter.clone();
            filter.state = state;
            left += count(tx, of, &filter, limit).await?;
        }
        Ok(left)
    }

    /// Whether those that were processed are changed now.
    fn is_at_processed(&self) -> bool {
        self.filter.state == Some(KeptState::Processed.as_str())
    }

    async fn next_processed(&self, started: f64, tx: &mut PgConnection) -> sqlx::Result<Batch> {
        let chosen = self.filter.bind(CHOOSE_PROCESSED, self.of);
        let chosen = chosen.bind(BATCH).bind(started).fetch_all(&mut *tx);
        let changed = RowKeys::read(&chosen.await?)?;
        match self.change {
            Change::Erase => erase_chosen(&changed, self.of.endpoint, tx).await?,
            _ => reprocess_chosen(&changed, self.of, tx).await.map(drop)?,
        }
        Ok(Batch {
            is_full: changed.len() as u64 == BATCH.unsigned_abs(),
            changed,
            last: Place::default(),
        })
    }

    /// All batches, each in a transaction of its own. Returns how many were changed.
    pub(crate) async fn run(mut self, pool: &PgPool) -> sqlx::Result<u64> {
        let mut all = 0;
        while !self.is_over() {
            let mut tx = ShortTx::begin(pool).await?;
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
            (None, false) if !self.is_at_processed() => self.after = Place::first_failed(),
            (_, false) => self.end_state(),
        }
    }

    fn end_state(&mut self) {
        self.done += 1;
        if self.done == self.states.len() {
            let has_changed = std::mem::take(&mut self.has_changed);
            let repeats = matches!(self.change, Change::Discard | Change::Erase);
            self.is_over = !repeats || !has_changed;
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

/// Where the first batch begins. A filter by the time of a failure leaves out what has never failed.
fn first(filter: &Filter) -> Place {
    match filter.failed.is_bounded() {
        true => Place::first_failed(),
        false => Place::default(),
    }
}
