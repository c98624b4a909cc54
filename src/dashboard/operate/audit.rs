//! What operators did, as the database has it.

use sqlx::postgres::PgRow;
use sqlx::{PgConnection, PgPool, Row};

use super::super::rows::Key;
use super::order::Action;
use crate::transaction::BEGIN_APART;

/// An action that has not been active for this long was interrupted: its process was killed.
const INTERRUPTED_AFTER: f64 = 60.0;

const INSERT: &str = "
    insert into idempotent_webhook.operator_actions
        (operator, action, endpoint, tenant, delivery_id, selection)
    values ($1, $2, $3, $4, $5, $6)
    returning id
";

/// Also says whether somebody has cancelled it.
const ADD: &str = "
    update idempotent_webhook.operator_actions
    set changed = changed + $2, active_at = now()
    where id = $1
    returning cancelled_at is not null
";

const END: &str = "
    update idempotent_webhook.operator_actions
    set changed = changed + $2, note = $3, active_at = now(), ended_at = now()
    where id = $1
";

const CANCEL: &str = "
    update idempotent_webhook.operator_actions
    set cancelled_at = now(), cancelled_by = $2
    where id = $1 and ended_at is null and cancelled_at is null
";

macro_rules! select {
    ($where:literal) => {
        concat!(
            "
    select
        id, operator, action, endpoint, tenant, delivery_id, selection,
        extract(epoch from began_at)::float8 as began_at,
        extract(epoch from ended_at)::float8 as ended_at,
        extract(epoch from now() - active_at)::float8 as inactive,
        cancelled_at is not null as cancelled, cancelled_by, changed, note
    from idempotent_webhook.operator_actions
    ",
            $where
        )
    };
}

const LIST: &str = select!("where $1::int8 is null or id < $1 order by id desc limit $2");

const ONE: &str = select!("where id = $1");

const OF_DELIVERY: &str = select!(
    "where delivery_id = $3 and endpoint = $1 and coalesce(tenant, '') = $2
    order by id desc
    limit 50"
);

/// An action, as it was asked for.
pub(super) struct Asked<'a> {
    pub(super) operator: Option<&'a str>,
    pub(super) action: Action,
    pub(super) endpoint: &'a str,
    pub(super) key: Option<&'a Key>,
    /// In words.
    pub(super) selection: Option<&'a str>,
}

/// An action, as it was written down.
pub(in crate::dashboard) struct Recorded {
    pub(in crate::dashboard) id: i64,
    pub(in crate::dashboard) operator: Option<String>,
    pub(in crate::dashboard) action: String,
    pub(in crate::dashboard) endpoint: String,
    pub(in crate::dashboard) tenant: Option<String>,
    pub(in crate::dashboard) delivery_id: Option<String>,
    pub(in crate::dashboard) selection: Option<String>,
    pub(in crate::dashboard) began_at: f64,
    pub(in crate::dashboard) ended_at: Option<f64>,
    pub(in crate::dashboard) changed: i64,
    pub(in crate::dashboard) note: Option<String>,
    pub(in crate::dashboard) cancelled_by: Option<String>,
    is_cancelled: bool,
    inactive: f64,
}

impl Recorded {
    fn read(row: &PgRow) -> sqlx::Result<Self> {
        Ok(Self {
            id: row.try_get("id")?,
            operator: row.try_get("operator")?,
            action: row.try_get("action")?,
            endpoint: row.try_get("endpoint")?,
            tenant: row.try_get("tenant")?,
            delivery_id: row.try_get("delivery_id")?,
            selection: row.try_get("selection")?,
            began_at: row.try_get("began_at")?,
            ended_at: row.try_get("ended_at")?,
            changed: row.try_get("changed")?,
            note: row.try_get("note")?,
            cancelled_by: row.try_get("cancelled_by")?,
            is_cancelled: row.try_get("cancelled")?,
            inactive: row.try_get("inactive")?,
        })
    }

    pub(in crate::dashboard) fn is_running(&self) -> bool {
        self.ended_at.is_none() && self.inactive < INTERRUPTED_AFTER
    }

    pub(in crate::dashboard) fn state(&self) -> &'static str {
        match self.ended_at {
            Some(_) if self.is_cancelled => "cancelled",
            Some(_) if self.changed == 0 && self.note.is_some() => "no change",
            Some(_) => "done",
            None if self.is_running() && self.is_cancelled => "cancelling",
            None if self.is_running() => "running",
            None => "interrupted",
        }
    }

    pub(in crate::dashboard) fn key(&self) -> Option<Key> {
        Some(Key {
            endpoint: self.endpoint.clone(),
            tenant: self.tenant.clone().unwrap_or_default(),
            id: self.delivery_id.clone()?,
        })
    }
}

/// Writes down that an action begins.
pub(super) async fn begin(pool: &PgPool, asked: &Asked<'_>) -> sqlx::Result<i64> {
    let mut tx = pool.begin_with(BEGIN_APART).await?;
    let id = sqlx::query_scalar(INSERT)
        .bind(asked.operator)
        .bind(asked.action.as_str())
        .bind(asked.endpoint)
        .bind(asked.key.and_then(Key::tenant))
        .bind(asked.key.map(|key| &key.id))
        .bind(asked.selection)
        .fetch_one(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok(id)
}

/// Counts a batch, in its transaction. Returns whether the action was cancelled.
pub(super) async fn add(tx: &mut PgConnection, id: i64, changed: u64) -> sqlx::Result<bool> {
    sqlx::query_scalar(ADD)
        .bind(id)
        .bind(changed.cast_signed())
        .fetch_one(tx)
        .await
}

/// Writes down that an action has ended.
pub(super) async fn end(
    pool: &PgPool,
    id: i64,
    changed: u64,
    note: Option<&str>,
) -> sqlx::Result<()> {
    let mut tx = pool.begin_with(BEGIN_APART).await?;
    sqlx::query(END)
        .bind(id)
        .bind(changed.cast_signed())
        .bind(note)
        .execute(&mut *tx)
        .await?;
    tx.commit().await
}

/// Has an action end after its current batch.
pub(super) async fn cancel(pool: &PgPool, id: i64, operator: Option<&str>) -> sqlx::Result<()> {
    let mut tx = pool.begin_with(BEGIN_APART).await?;
    sqlx::query(CANCEL)
        .bind(id)
        .bind(operator)
        .execute(&mut *tx)
        .await?;
    tx.commit().await
}

/// The latest actions, before this one if it is given.
pub(in crate::dashboard) async fn list(
    connection: &mut PgConnection,
    before: Option<i64>,
    limit: i64,
) -> sqlx::Result<Vec<Recorded>> {
    let list = sqlx::query(LIST).bind(before).bind(limit);
    let rows = list.fetch_all(connection).await?;
    rows.iter().map(Recorded::read).collect()
}

pub(in crate::dashboard) async fn one(
    connection: &mut PgConnection,
    id: i64,
) -> sqlx::Result<Option<Recorded>> {
    let row = sqlx::query(ONE).bind(id).fetch_optional(connection).await?;
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
