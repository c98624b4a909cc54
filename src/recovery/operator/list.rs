//! The list of kept deliveries, and their number.

use std::time::SystemTime;

#[cfg(feature = "dashboard")]
use sqlx::PgConnection;
use sqlx::postgres::PgRow;
use sqlx::{PgPool, Row};

use super::Scope;
use super::filter::{Filter, is_listed, meets_filter, plan_for_values};
use crate::recovery::KeptState;
use crate::transaction::ShortTx;
use crate::transaction::pg_time::from_unix_time;

/// A list of at most `$16` deliveries in the order of their keys, after the key with the tenant `$14` and the id
/// `$15`.
macro_rules! list {
    (by $key:literal after $last:literal) => {
        concat!(
            "
    select
        kept.tenant_name, kept.tenant, kept.delivery_id, kept.event_type, kept.state, kept.attempts,
        kept.status, kept.reason,
        extract(epoch from kept.first_received_at)::float8 as first_received_at,
        extract(epoch from kept.last_failed_at)::float8 as last_failed_at,
        extract(epoch from kept.next_attempt_at)::float8 as next_attempt_at,
        extract(epoch from kept.processed_at)::float8 as processed_at,
        kept.processed_version
    from idempotent_webhook.kept_deliveries as kept
    where ",
            is_listed!(),
            "
        and ",
            meets_filter!(),
            "
        and ($14::text is null or (",
            $key,
            ") > (",
            $last,
            "))
    order by ",
            $key,
            "
    limit $16
"
        )
    };
}

/// Sorted by the primary key, because its index finds a page of the archive without reading later pages. Most rows of
/// the table belong to the archive.
const PROCESSED: &str = list!(by "kept.tenant, kept.delivery_id" after "$14, $15");

/// Not sorted by the primary key, so that the planner uses the indexes of the states. If ids grow with time, the order
/// of the primary key puts due deliveries after the whole archive. The planner does not know that, and would read the
/// archive.
const UNPROCESSED: &str = list!(by "kept.delivery_id, kept.tenant" after "$15, $14");

#[cfg(feature = "dashboard")]
const COUNT: &str = concat!(
    "
    select count(*)
    from (
        select
        from idempotent_webhook.kept_deliveries as kept
        where ",
    is_listed!(),
    "
        and ",
    meets_filter!(),
    "
        limit $14
    ) as chosen
"
);

/// A delivery that is kept, or whose failure is recorded.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct KeptDelivery {
    /// The tenant, if there is one.
    pub tenant: Option<String>,
    /// The delivery id.
    pub delivery_id: String,
    /// The event type, if the delivery has one.
    pub event_type: Option<String>,
    /// Its state.
    pub state: KeptState,
    /// How many attempts there have been, including the provider's.
    pub attempts: u32,
    /// When its first request came.
    pub first_received_at: SystemTime,
    /// When an attempt last failed, if one has failed.
    pub last_failed_at: Option<SystemTime>,
    /// When the next attempt is due.
    pub next_attempt_at: Option<SystemTime>,
    /// When it was processed, if it was processed and its request is archived.
    pub processed_at: Option<SystemTime>,
    /// The [version](crate::IdempotentWebhook::version) that processed it, if it was processed and the version is
    /// known.
    pub processed_version: Option<String>,
    /// The status of the last failed attempt, if an attempt has failed.
    pub status: Option<u16>,
    /// Why the last attempt failed.
    pub reason: Option<String>,
    /// The tenant in the row's key. It is empty unless ids are separate by tenant.
    key_tenant: String,
}

pub(crate) async fn list(
    pool: &PgPool,
    scope: Scope<'_>,
    filter: &Filter,
    after: Option<&KeptDelivery>,
    limit: u32,
) -> sqlx::Result<Vec<KeptDelivery>> {
    let statement = match filter.is_of_processed() {
        true => PROCESSED,
        false => UNPROCESSED,
    };
    let rows = ShortTx::run(pool, async |tx| {
        plan_for_values(tx).await?;
        let listed = filter
            .bind_listed(statement, scope)
            .bind(after.map(|last| &last.key_tenant))
            .bind(after.map(|last| &last.delivery_id))
            .bind(i64::from(limit));
        listed.fetch_all(tx).await
    })
    .await?;
    rows.iter().map(read).collect()
}

fn read(row: &PgRow) -> sqlx::Result<KeptDelivery> {
    let time = |column| -> sqlx::Result<Option<SystemTime>> {
        Ok(row.try_get::<Option<f64>, _>(column)?.map(from_unix_time))
    };
    let key_tenant: String = row.try_get("tenant")?;
    let tenant: Option<String> = row.try_get("tenant_name")?;
    Ok(KeptDelivery {
        tenant: tenant.or_else(|| (!key_tenant.is_empty()).then(|| key_tenant.clone())),
        delivery_id: row.try_get("delivery_id")?,
        event_type: row.try_get("event_type")?,
        state: KeptState::read(row.try_get("state")?)?,
        attempts: row.try_get::<i32, _>("attempts")?.max(0).cast_unsigned(),
        first_received_at: from_unix_time(row.try_get("first_received_at")?),
        last_failed_at: time("last_failed_at")?,
        next_attempt_at: time("next_attempt_at")?,
        processed_at: time("processed_at")?,
        processed_version: row.try_get("processed_version")?,
        status: row
            .try_get::<Option<i16>, _>("status")?
            .map(i16::cast_unsigned),
        reason: row.try_get("reason")?,
        key_tenant,
    })
}

/// How many deliveries match, at most `limit`.
#[cfg(feature = "dashboard")]
pub(crate) async fn count(
    connection: &mut PgConnection,
    scope: Scope<'_>,
    filter: &Filter,
    limit: i64,
) -> sqlx::Result<i64> {
    plan_for_values(connection).await?;
    let counted = filter.bind_listed(COUNT, scope).bind(limit);
    counted.fetch_one(connection).await?.try_get(0)
}
