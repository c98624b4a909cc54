//! The record of operator actions in the database, and their cancellation.

use serde::Serialize;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, PgPool, Row};

use super::super::Access;
use super::super::html::Timestamp;
use super::super::rows::Key;
use super::super::selection::{latest_reason, with_reason};
use super::action::Action;
use crate::recovery::masked;
use crate::recovery::operator::Applied;
use crate::transaction::ShortTx;

/// An unfinished action that has not been active for this many seconds was interrupted: its process was killed.
const INTERRUPTED_AFTER: f64 = 60.0;

const INSERT: &str = "
    insert into idempotent_webhook.operator_actions
        (operator, action, endpoint, endpoints, tenant, delivery_id, selection, reason_group)
    values ($1, $2, case when cardinality($3) = 1 then ($3)[1] end, $3, $4, $5, $6, $7::text::uuid)
    returning id
";

/// Adds to the counts of an action, and returns whether somebody has cancelled the action.
const ADD: &str = "
    update idempotent_webhook.operator_actions
    set changed = changed + $2, running = running + $3, active_at = clock_timestamp()
    where id = $1
    returning cancelled_at is not null
";

const ADD_DELIVERIES: &str = "
    insert into idempotent_webhook.operator_action_deliveries (action, endpoint, tenant, delivery_id)
    select $4, endpoint, tenant, delivery_id
    from unnest($1::text[], $2::text[], $3::text[]) as changed (endpoint, tenant, delivery_id)
    on conflict do nothing
";

const END: &str = "
    update idempotent_webhook.operator_actions
    set note = $2, active_at = now(), ended_at = now()
    where id = $1
";

/// Deletes the record of the action `$1` if somebody has only pressed the same button again, and returns the previous
/// record for the same delivery. The previous record must be the same action by the same operator, must have ended less
/// than a minute ago, must have changed nothing, and must have the same note, `$2`.
const DELETE_REPEATED: &str = "
    with repeated as (
        select before.id
        from idempotent_webhook.operator_actions as this
        cross join lateral (
            select before.*
            from idempotent_webhook.operator_actions as before
            where before.delivery_id = this.delivery_id and before.endpoint = this.endpoint
                and before.tenant is not distinct from this.tenant and before.id < this.id
            order by before.id desc
            limit 1
        ) as before
        where this.id = $1
            and before.action = this.action
            and before.operator is not distinct from this.operator
            and before.changed = 0 and before.note = $2
            and before.ended_at > now() - interval '1 minute'
    )
    delete from idempotent_webhook.operator_actions as this
    using repeated
    where this.id = $1
    returning repeated.id
";

const CANCEL: &str = "
    update idempotent_webhook.operator_actions
    set cancelled_at = now(), cancelled_by = $2
    where id = $1 and ended_at is null and cancelled_at is null
    returning id
";

/// Deliveries that are still due are counted only for actions that changed at most 500 deliveries. If the action
/// applied to a reason group (all deliveries with similar failure reasons), an example of the reason is read from a
/// delivery that still has one.
macro_rules! select {
    ($where:literal) => {
        concat!(
            "
    select
        id, operator, action, endpoint, tenant, delivery_id, selection, reason_group::text,
        case when reason_group is not null then (",
            latest_reason!(
                "operator_actions.endpoints",
                "array['due', 'dead', 'recorded', 'processed']",
                "operator_actions.reason_group",
                "'infinity'"
            ),
            "
        ) end as reason,
        extract(epoch from began_at)::float8 as began_at,
        extract(epoch from ended_at)::float8 as ended_at,
        extract(epoch from now() - active_at)::float8 as inactive,
        cancelled_at is not null as cancelled, cancelled_by, changed, running, note,
        case when action in ('retry', 'reprocess') and changed <= 500 then (
            select case when count(*) > 0 then count(kept.endpoint) end
            from idempotent_webhook.operator_action_deliveries as of_action
            left join idempotent_webhook.kept_deliveries as kept
                on kept.endpoint = of_action.endpoint and kept.tenant = of_action.tenant
                and kept.delivery_id = of_action.delivery_id and kept.state = 'due'
            where of_action.action = operator_actions.id
        ) end as due
    from idempotent_webhook.operator_actions
    ",
            $where
        )
    };
}

const LIST: &str = select!(
    "where ($1::int8 is null or id < $1) and ($3::text[] is null or endpoints <@ $3)
    order by id desc
    limit $2"
);

const ONE: &str = select!("where id = $1 and ($2::text[] is null or endpoints <@ $2)");

const OF_DELIVERY: &str = select!(
    "where delivery_id = $3 and endpoint = $1 and coalesce(tenant, '') = $2
    order by id desc
    limit 50"
);

/// An action, as the operator requested it.
pub(super) struct Asked<'a> {
    pub(super) operator: Option<&'a str>,
    pub(super) action: Action,
    pub(super) endpoints: &'a [String],
    pub(super) key: Option<&'a Key>,
    /// The filters of the action in words, without the reason.
    pub(super) selection: Option<&'a str>,
    /// The UUID of the reason group that the action applies to.
    pub(super) reason_group: Option<&'a str>,
}

/// An action, as it is recorded.
#[derive(Debug, Serialize)]
pub(in crate::dashboard) struct Recorded {
    pub(in crate::dashboard) id: i64,
    pub(in crate::dashboard) state: &'static str,
    pub(in crate::dashboard) operator: Option<String>,
    pub(in crate::dashboard) action: String,
    pub(in crate::dashboard) endpoint: Option<String>,
    pub(in crate::dashboard) tenant: Option<String>,
    pub(in crate::dashboard) delivery_id: Option<String>,
    pub(in crate::dashboard) selection: Option<String>,
    pub(in crate::dashboard) began: Timestamp,
    pub(in crate::dashboard) ended: Option<Timestamp>,
    pub(in crate::dashboard) changed: i64,
    /// How many deliveries the action did not change, because an attempt was working on them.
    pub(in crate::dashboard) running: i64,
    /// How many of the changed deliveries are still due: they wait for an attempt, or an attempt is running. `None` if
    /// they were not counted.
    pub(in crate::dashboard) due: Option<i64>,
    pub(in crate::dashboard) note: Option<String>,
    pub(in crate::dashboard) cancelled_by: Option<String>,
    #[serde(skip)]
    is_running: bool,
}

impl Recorded {
    fn read(row: &PgRow) -> sqlx::Result<Self> {
        let inactive: f64 = row.try_get("inactive")?;
        let ended: Option<f64> = row.try_get("ended_at")?;
        let selection: Option<String> = row.try_get("selection")?;
        let group: Option<&str> = row.try_get("reason_group")?;
        let reason: Option<&str> = row.try_get("reason")?;
        let reason = reason.map(masked);
        let mut recorded = Self {
            id: row.try_get("id")?,
            state: "",
            operator: row.try_get("operator")?,
            action: row.try_get("action")?,
            endpoint: row.try_get("endpoint")?,
            tenant: row.try_get("tenant")?,
            delivery_id: row.try_get("delivery_id")?,
            selection: selection.map(|words| with_reason(words, group, reason.as_deref())),
            began: Timestamp(row.try_get("began_at")?),
            ended: ended.map(Timestamp),
            changed: row.try_get("changed")?,
            running: row.try_get("running")?,
            due: row.try_get("due")?,
            note: row.try_get("note")?,
            cancelled_by: row.try_get("cancelled_by")?,
            is_running: ended.is_none() && inactive < INTERRUPTED_AFTER,
        };
        recorded.state = recorded.state(row.try_get("cancelled")?);
        Ok(recorded)
    }

    fn state(&self, is_cancelled: bool) -> &'static str {
        match self.ended {
            Some(_) if is_cancelled => "cancelled",
            Some(_) if self.changed == 0 && (self.note.is_some() || self.running > 0) => {
                "no change"
            }
            Some(_) if self.runs_deliveries() => state_of_due(self.due),
            Some(_) => "done",
            None if self.is_running && is_cancelled => "cancelling",
            None if self.is_running => "running",
            None => "interrupted",
        }
    }

    pub(in crate::dashboard) fn is_running(&self) -> bool {
        self.is_running
    }

    /// Whether this kind of action makes deliveries due.
    pub(in crate::dashboard) fn runs_deliveries(&self) -> bool {
        matches!(&*self.action, "retry" | "reprocess")
    }

    pub(in crate::dashboard) fn key(&self) -> Option<Key> {
        Some(Key {
            endpoint: self.endpoint.clone()?,
            tenant: self.tenant.clone().unwrap_or_default(),
            id: self.delivery_id.clone()?,
        })
    }
}

/// The state of an action that makes deliveries due. The action is done when none of its deliveries is due any longer.
pub(in crate::dashboard) fn state_of_due(due: Option<i64>) -> &'static str {
    match due {
        Some(0) => "done",
        Some(_) => "under way",
        None => "made due",
    }
}

/// Records that an action starts.
pub(super) async fn begin(pool: &PgPool, asked: &Asked<'_>) -> sqlx::Result<i64> {
    ShortTx::run(pool, async |tx| {
        let recorded = sqlx::query_scalar(INSERT)
            .bind(asked.operator)
            .bind(asked.action.as_str())
            .bind(asked.endpoints)
            .bind(asked.key.and_then(Key::tenant))
            .bind(asked.key.map(|key| &key.id))
            .bind(asked.selection)
            .bind(asked.reason_group);
        recorded.fetch_one(tx).await
    })
    .await
}

/// Counts the changed deliveries, and the deliveries that were not changed because they are running. `tx` must be the
/// transaction that makes the change. Also records which deliveries the action made due. Returns whether the action was
/// cancelled.
pub(super) async fn add(
    tx: &mut PgConnection,
    id: i64,
    action: Action,
    endpoint: &str,
    applied: &Applied,
) -> sqlx::Result<bool> {
    if action.makes_due() && !applied.changed.is_empty() {
        applied
            .changed
            .bind(sqlx::query(ADD_DELIVERIES), endpoint)
            .bind(id)
            .execute(&mut *tx)
            .await?;
    }
    sqlx::query_scalar(ADD)
        .bind(id)
        .bind(i64::try_from(applied.changed.len()).unwrap_or(i64::MAX))
        .bind(i64::try_from(applied.running).unwrap_or(i64::MAX))
        .fetch_one(tx)
        .await
}

/// Records that an action has finished.
pub(super) async fn end(pool: &PgPool, id: i64, note: Option<&str>) -> sqlx::Result<()> {
    ShortTx::run(pool, async |tx| write_end(tx, id, note).await).await
}

async fn write_end(tx: &mut PgConnection, id: i64, note: Option<&str>) -> sqlx::Result<()> {
    let end = sqlx::query(END).bind(id).bind(note);
    end.execute(tx).await.map(drop)
}

/// Records that an action on a delivery has changed nothing. If the same action ran less than a minute ago, and changed
/// nothing either, only that earlier record stays. Returns the id of the remaining record.
pub(super) async fn end_unchanged(pool: &PgPool, id: i64, note: &str) -> sqlx::Result<i64> {
    ShortTx::run(pool, async |tx| {
        let repeated: Option<i64> = sqlx::query_scalar(DELETE_REPEATED)
            .bind(id)
            .bind(note)
            .fetch_optional(&mut *tx)
            .await?;
        if repeated.is_none() {
            write_end(tx, id, Some(note)).await?;
        }
        Ok(repeated.unwrap_or(id))
    })
    .await
}

/// Makes an action stop after its current batch. Returns whether the action could be cancelled: it had not finished,
/// and nobody had cancelled it before.
pub(super) async fn cancel(pool: &PgPool, id: i64, operator: Option<&str>) -> sqlx::Result<bool> {
    let cancelled = ShortTx::run(pool, async |tx| {
        let cancelled = sqlx::query(CANCEL).bind(id).bind(operator);
        cancelled.fetch_optional(tx).await
    });
    Ok(cancelled.await?.is_some())
}

/// Lists the latest actions. With `before`, only actions that were recorded before the action with this id.
pub(in crate::dashboard) async fn list(
    connection: &mut PgConnection,
    access: &Access,
    before: Option<i64>,
    limit: i64,
) -> sqlx::Result<Vec<Recorded>> {
    let list = sqlx::query(LIST)
        .bind(before)
        .bind(limit)
        .bind(access.endpoints());
    let rows = list.fetch_all(connection).await?;
    rows.iter().map(Recorded::read).collect()
}

/// Returns an action, if it exists and the reader may see all of its endpoints.
pub(in crate::dashboard) async fn one(
    connection: &mut PgConnection,
    access: &Access,
    id: i64,
) -> sqlx::Result<Option<Recorded>> {
    let one = sqlx::query(ONE).bind(id).bind(access.endpoints());
    let row = one.fetch_optional(connection).await?;
    row.as_ref().map(Recorded::read).transpose()
}

pub(in crate::dashboard) async fn of_delivery(
    connection: &mut PgConnection,
    key: &Key,
) -> sqlx::Result<Vec<Recorded>> {
    let list = sqlx::query(OF_DELIVERY)
        .bind(&key.endpoint)
        .bind(&key.tenant)
        .bind(&key.id);
    let rows = list.fetch_all(connection).await?;
    rows.iter().map(Recorded::read).collect()
}
