//! Finds the records of delivery ids.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use super::super::super::Access;
use super::super::super::claim_lock::{claim_lock, held_locks};
use super::super::super::html::Timestamp;
use super::super::super::rows::Key;

/// For each id, at most this many processed, this many kept and this many discarded deliveries are shown.
pub(super) const MAX_OF_ID: usize = 100;

/// How many rows are read at once. This is more than the rows of one id.
const MAX_ROWS: usize = 10 * MAX_OF_ID;

/// Processed deliveries with the ids `$1`, the endpoints `$2` and the tenants `$3`, at most `$4`. The statements for
/// kept and for discarded deliveries have the same parameters. If the tenant is not part of the key, only a kept
/// delivery has a known tenant.
const PROCESSED: &str = "
    select
        endpoint, tenant, delivery_id, event_type,
        extract(epoch from received_at)::float8 as at
    from idempotent_webhook.deliveries
    where delivery_id = any($1)
        and ($2::text[] is null or endpoint = any($2))
        and ($3::text[] is null or tenant = '' or tenant = any($3))
    order by delivery_id, endpoint, tenant
    limit $4
";

/// Kept deliveries. An index on the requests finds the deliveries that can run again, and another index finds
/// deliveries without a request.
const KEPT: &str = "
    select
        kept.endpoint, kept.tenant, kept.delivery_id, kept.tenant_name, kept.event_type, kept.state,
        extract(epoch from coalesce(kept.last_failed_at, kept.first_received_at))::float8 as at
    from (
        select endpoint, tenant, delivery_id
        from idempotent_webhook.kept_requests
        where delivery_id = any($1)
        union
        select endpoint, tenant, delivery_id
        from idempotent_webhook.kept_deliveries
        where delivery_id = any($1) and delivery_id > '' and state = 'recorded'
    ) as wanted
    join idempotent_webhook.kept_deliveries as kept using (endpoint, tenant, delivery_id)
    where ($2::text[] is null or kept.endpoint = any($2))
        and ($3::text[] is null or coalesce(kept.tenant_name, kept.tenant) = any($3))
    order by kept.delivery_id, kept.endpoint, kept.tenant
    limit $4
";

/// Deliveries whose first attempt is running, found by the lock of their claim. This query does not find deliveries
/// whose tenant is part of the key.
const IN_FLIGHT: &str = concat!(
    "
    select known.endpoint, wanted.id
    from unnest($1::text[]) as known (endpoint)
    cross join unnest($2::text[]) as wanted (id)
    where ",
    claim_lock!("known.endpoint", "''", "wanted.id"),
    " in (",
    held_locks!(),
    ")
"
);

/// The time before which deliveries may have been deleted.
pub(super) const PRUNED: &str = "
    select extract(epoch from max(before))::float8
    from idempotent_webhook.pruned
";

/// How many requests were rejected in the last 24 hours, and whether any were rejected before. It is not known which
/// deliveries these requests belong to.
pub(super) const REJECTED: &str = "
    select
        coalesce(sum(count) filter (where cause <> 'method_not_allowed'), 0)::int8 as today,
        exists (
            select from idempotent_webhook.rejections
            where endpoint = any($1) and hour <= now() - interval '24 hours'
        ) as before
    from idempotent_webhook.rejections
    where endpoint = any($1) and hour > now() - interval '24 hours'
";

/// Discarded or forgotten deliveries. Retention keeps them as long as processed deliveries. The tenant is known only if
/// it is part of the key.
const DISCARDED: &str = "
    select
        endpoint, tenant, delivery_id,
        extract(epoch from discarded_at)::float8 as at
    from idempotent_webhook.discarded
    where delivery_id = any($1)
        and ($2::text[] is null or endpoint = any($2))
        and ($3::text[] is null or tenant = any($3))
    order by delivery_id, endpoint, tenant
    limit $4
";

#[derive(Serialize)]
pub(in crate::dashboard::pages) struct Found {
    pub(super) event_type: Option<String>,
    pub(super) tenant_name: Option<String>,
    pub(super) state: String,
    pub(super) at: Option<Timestamp>,
    /// Whether the delivery was processed, and its request is kept so that it can be processed again.
    pub(super) has_request: bool,
}

pub(in crate::dashboard::pages) type All = BTreeMap<Key, Found>;

#[derive(Serialize)]
pub(in crate::dashboard::pages) struct Discarded {
    #[serde(flatten)]
    pub(in crate::dashboard::pages) key: Key,
    pub(in crate::dashboard::pages) at: Timestamp,
}

/// Reads the rows of ids, with a separate limit for each id. Even if one id has very many deliveries, the deliveries of
/// the other ids are found.
pub(super) struct ById<'a> {
    pub(super) connection: &'a mut PgConnection,
    pub(super) access: &'a Access,
    /// Sorted by their bytes, as Postgres sorts them.
    pub(super) ids: &'a [String],
    /// The ids that have more rows than were read.
    pub(super) cut: BTreeSet<String>,
}

impl ById<'_> {
    async fn read(&mut self, statement: &'static str) -> sqlx::Result<Vec<PgRow>> {
        let mut all: BTreeMap<String, Vec<PgRow>> = BTreeMap::new();
        let mut ids = self.ids;
        loop {
            let rows = sqlx::query(statement)
                .bind(ids)
                .bind(self.access.endpoints())
                .bind(self.access.tenants())
                .bind(MAX_ROWS as i64)
                .fetch_all(&mut *self.connection)
                .await?;
            let is_full = rows.len() == MAX_ROWS;
            let mut last = String::new();
            for row in rows {
                last = row.try_get("delivery_id")?;
                all.entry(last.clone()).or_default().push(row);
            }
            if !is_full {
                break;
            }
            // The rows of the last id may be incomplete. If enough of them were read, the rest are skipped. If not, all
            // rows of this id are read again, together with the ids after it.
            let is_done = all.get(&last).is_some_and(|rows| rows.len() > MAX_OF_ID);
            if !is_done {
                all.remove(&last);
            }
            let next = ids.partition_point(|id| *id < last || is_done && *id == last);
            ids = ids.get(next..).unwrap_or_default();
        }
        let mut read = Vec::new();
        for (id, mut rows) in all {
            if rows.len() > MAX_OF_ID {
                rows.truncate(MAX_OF_ID);
                self.cut.insert(id);
            }
            read.append(&mut rows);
        }
        Ok(read)
    }
}

pub(super) async fn find(by_id: &mut ById<'_>, endpoints: &[String]) -> sqlx::Result<All> {
    let mut found = All::new();
    for row in by_id.read(KEPT).await? {
        let state: String = row.try_get("state")?;
        let of_row = Found {
            event_type: row.try_get("event_type")?,
            tenant_name: row.try_get("tenant_name")?,
            has_request: state == "processed",
            state,
            at: row.try_get::<Option<f64>, _>("at")?.map(Timestamp),
        };
        found.insert(Key::read(&row)?, of_row);
    }
    // A processed delivery counts as processed, even if a kept row of it still exists.
    for row in by_id.read(PROCESSED).await? {
        let key = Key::read(&row)?;
        let kept = found.remove(&key);
        let of_row = Found {
            event_type: row.try_get("event_type")?,
            has_request: kept.as_ref().is_some_and(|kept| kept.has_request),
            tenant_name: kept.and_then(|kept| kept.tenant_name),
            state: "processed".to_owned(),
            at: row.try_get::<Option<f64>, _>("at")?.map(Timestamp),
        };
        found.insert(key, of_row);
    }
    let rows = sqlx::query(IN_FLIGHT).bind(endpoints).bind(by_id.ids);
    for row in rows.fetch_all(&mut *by_id.connection).await? {
        let key = Key {
            endpoint: row.try_get("endpoint")?,
            tenant: String::new(),
            id: row.try_get("id")?,
        };
        found.entry(key).or_insert(Found {
            event_type: None,
            tenant_name: None,
            state: "in flight".to_owned(),
            at: None,
            has_request: false,
        });
    }
    let access = by_id.access;
    found.retain(|key, found| {
        let tenant = found.tenant_name.as_ref().unwrap_or(&key.tenant);
        access.sees_endpoint(&key.endpoint) && access.sees_tenant(tenant)
    });
    Ok(found)
}

pub(super) async fn find_discarded(by_id: &mut ById<'_>) -> sqlx::Result<Vec<Discarded>> {
    let read = |row: &PgRow| {
        Ok(Discarded {
            key: Key::read(row)?,
            at: Timestamp(row.try_get("at")?),
        })
    };
    by_id.read(DISCARDED).await?.iter().map(read).collect()
}
