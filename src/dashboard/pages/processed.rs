//! The list of processed deliveries.
//!
//! Each endpoint is read by its own statement, so that the statements also work if `deliveries` is a distributed table.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{PgConnection, Postgres, Row};

use super::super::cursor::{Cursor, Listed, PAGE, Search, bind};
use super::super::html::Timestamp;
use super::super::rows::{Delivery, Key, columns};
use super::super::selection::Selection;

/// The deliveries of the endpoint `$1` that the index finds: between the times `$2` and `$3`, and after the position in
/// `$4` to `$7`.
macro_rules! indexed {
    () => {
        "
    from idempotent_webhook.deliveries
    where endpoint = $1
        and received_at > '-infinity'
        and ($2::float8 is null or received_at >= to_timestamp($2))
        and ($3::float8 is null or received_at < to_timestamp($3))
        and (
            $4::float8 is null
            or (received_at, delivery_id, tenant, endpoint) < (to_timestamp($4), $5, $6, $7)
        )"
    };
}

const SEARCHED_TO: &str = concat!(
    "
    select endpoint, tenant, delivery_id, extract(epoch from received_at)::float8 as at",
    indexed!(),
    "
    order by received_at desc, delivery_id desc, tenant desc
    offset $8 limit 1
"
);

const PROCESSED: &str = concat!(
    "
    select
        endpoint, tenant, delivery_id, event_type, extract(epoch from received_at)::float8 as at",
    indexed!(),
    "
        and (
            $8::float8 is null
            or (received_at, delivery_id, tenant, endpoint) >= (to_timestamp($8), $9, $10, $11)
        )
        and ($12::text is null or event_type = $12)
        and ($13::text[] is null or tenant = any($13))
    order by received_at desc, delivery_id desc, tenant desc
    limit $14
"
);

/// The kept rows of the listed deliveries whose requests are still in the archive.
const ARCHIVED: &str = "
    select kept.endpoint, kept.tenant, kept.delivery_id, kept.tenant_name, kept.attempts
    from unnest($1::text[], $2::text[], $3::text[]) as wanted (endpoint, tenant, delivery_id)
    join idempotent_webhook.kept_deliveries as kept using (endpoint, tenant, delivery_id)
    where kept.state = 'processed'
";

pub(super) async fn list(
    connection: &mut PgConnection,
    endpoints: &[String],
    selection: &Selection,
    cursor: Option<Cursor>,
) -> sqlx::Result<Listed<Delivery>> {
    let mut search = Search::new(endpoints.len());
    let (mut rows, mut after) = (Vec::new(), cursor);
    loop {
        let mut searched_to = None;
        if selection.is_searched() {
            for endpoint in endpoints {
                let edge = indexed(SEARCHED_TO, endpoint, selection, after.as_ref())
                    .bind(search.each)
                    .fetch_optional(&mut *connection)
                    .await?;
                let edge = edge.as_ref().map(Cursor::read).transpose()?;
                searched_to = later(searched_to, edge);
            }
        }
        let wanted = PAGE + 1 - rows.len();
        let mut found: Vec<Delivery> = Vec::new();
        for endpoint in endpoints {
            let processed = indexed(PROCESSED, endpoint, selection, after.as_ref());
            let processed = bind(searched_to.as_ref(), processed)
                .bind(&selection.event_type)
                .bind(&selection.tenants)
                .bind(wanted as i64)
                .fetch_all(&mut *connection)
                .await?;
            for row in &processed {
                found.push(read(row)?);
            }
        }
        found.sort_by(|a, b| {
            let order = place(b).partial_cmp(&place(a));
            order.unwrap_or(Ordering::Equal)
        });
        found.truncate(wanted);
        rows.append(&mut found);
        if rows.len() > PAGE || searched_to.is_none() || !search.goes_on() {
            let mut listed = Listed::new(rows, searched_to, place);
            add_archived(connection, &mut listed.rows).await?;
            return Ok(listed);
        }
        after = searched_to;
    }
}

fn later(one: Option<Cursor>, other: Option<Cursor>) -> Option<Cursor> {
    if other > one { other } else { one }
}

fn place(delivery: &Delivery) -> Option<Cursor> {
    let Timestamp(at) = delivery.processed?;
    Some(Cursor::new(at, &delivery.key))
}

/// A query with its first seven values bound.
fn indexed<'q>(
    sql: &'static str,
    endpoint: &'q str,
    selection: &'q Selection,
    cursor: Option<&'q Cursor>,
) -> Query<'q, Postgres, PgArguments> {
    let query = sqlx::query(sql)
        .bind(endpoint)
        .bind(selection.from.map(|Timestamp(from)| from))
        .bind(selection.until.map(|Timestamp(until)| until));
    bind(cursor, query)
}

fn read(row: &PgRow) -> sqlx::Result<Delivery> {
    let key = Key::read(row)?;
    Ok(Delivery {
        tenant: key.tenant().map(str::to_owned),
        key,
        event_type: row.try_get("event_type")?,
        state: "processed".to_owned(),
        attempts: None,
        status: None,
        reason: None,
        last_failed: None,
        next_attempt: None,
        processed: Some(Timestamp(row.try_get("at")?)),
        has_request: Some(false),
    })
}

async fn add_archived(
    connection: &mut PgConnection,
    deliveries: &mut [Delivery],
) -> sqlx::Result<()> {
    let [endpoints, tenants, ids] = columns(deliveries.iter().map(|delivery| &delivery.key));
    let rows = sqlx::query(ARCHIVED)
        .bind(endpoints)
        .bind(tenants)
        .bind(ids)
        .fetch_all(connection)
        .await?;
    let mut archived: BTreeMap<Key, (Option<String>, i32)> = BTreeMap::new();
    for row in &rows {
        let kept = (row.try_get("tenant_name")?, row.try_get("attempts")?);
        archived.insert(Key::read(row)?, kept);
    }
    for delivery in deliveries {
        if let Some((tenant, attempts)) = archived.remove(&delivery.key) {
            delivery.tenant = tenant.or(delivery.tenant.take());
            delivery.attempts = Some(attempts);
            delivery.has_request = Some(true);
        }
    }
    Ok(())
}
