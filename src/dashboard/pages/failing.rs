//! The lists of failed deliveries and of due deliveries.

use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{PgConnection, Postgres, Row};

use super::super::Access;
use super::super::cursor::{Cursor, Listed, PAGE, Search, bind};
use super::super::html::Timestamp;
use super::super::rows::{Delivery, Key};
use super::super::selection::Selection;

/// The columns of a list row. The alias `kept` is a row of `kept_deliveries`.
macro_rules! columns {
    () => {
        "kept.endpoint, kept.tenant, kept.delivery_id, kept.tenant_name, kept.event_type,
        kept.state, kept.attempts, kept.status, left(kept.reason, 300) as reason,
        kept.last_failed_at, kept.next_attempt_at,
        exists (
            select from idempotent_webhook.processes where number = kept.taken_by
        ) as running,
        extract(epoch from kept.last_failed_at)::float8 as failed_at,
        extract(epoch from kept.next_attempt_at)::float8 as next_at"
    };
}

/// Failed deliveries with one endpoint and state, which an index finds latest first. If `$3` gives a reason group, only
/// deliveries with a reason of this group are read. Otherwise, if `$4` gives an event type, only deliveries with this
/// type are read. The deliveries come after the position in `$5` to `$8`, and failed between the times `$9` and `$10`.
macro_rules! indexed {
    () => {
        "
            from idempotent_webhook.kept_deliveries as kept
            where kept.endpoint = known.endpoint and kept.state = states.state
                and kept.last_failed_at is not null
                and ($3::text is null or kept.reason_group = $3::text::uuid)
                and ($4::text is null or $3 is not null or kept.event_type = $4)
                and (
                    $5::float8 is null
                    or (kept.last_failed_at, kept.delivery_id, kept.tenant, kept.endpoint)
                        < (to_timestamp($5), $6, $7, $8)
                )
                and ($9::float8 is null or kept.last_failed_at >= to_timestamp($9))
                and ($10::float8 is null or kept.last_failed_at < to_timestamp($10))"
    };
}

/// The position at which a round of the search ends (`cursor.rs`). For each endpoint and state, this statement finds
/// the position after the next `$11` deliveries. The round ends at the most recent of these positions.
const SEARCHED_TO: &str = concat!(
    "
    select
        edge.endpoint, edge.tenant, edge.delivery_id,
        extract(epoch from edge.last_failed_at)::float8 as at
    from unnest($1::text[]) as known (endpoint)
    cross join unnest($2::text[]) as states (state)
    cross join lateral (
        select kept.endpoint, kept.tenant, kept.delivery_id, kept.last_failed_at",
    indexed!(),
    "
        order by kept.last_failed_at desc, kept.delivery_id desc, kept.tenant desc
        offset $11 limit 1
    ) as edge
    order by edge.last_failed_at desc, edge.delivery_id desc, edge.tenant desc, edge.endpoint desc
    limit 1
"
);

/// The failed deliveries, latest first, down to the position in `$11` to `$14`. The other columns are read only for
/// rows on the page.
const FAILED: &str = concat!(
    "
    select ",
    columns!(),
    "
    from (
        select chosen.*
        from unnest($1::text[]) as known (endpoint)
        cross join unnest($2::text[]) as states (state)
        cross join lateral (
            select kept.endpoint, kept.tenant, kept.delivery_id, kept.last_failed_at",
    indexed!(),
    "
                and (
                    $11::float8 is null
                    or (kept.last_failed_at, kept.delivery_id, kept.tenant, kept.endpoint)
                        >= (to_timestamp($11), $12, $13, $14)
                )
                and ($4::text is null or kept.event_type = $4)
                and ($15::text[] is null or coalesce(kept.tenant_name, kept.tenant) = any($15))
            order by kept.last_failed_at desc, kept.delivery_id desc, kept.tenant desc
            limit $16
        ) as chosen
        order by chosen.last_failed_at desc, chosen.delivery_id desc, chosen.tenant desc,
            chosen.endpoint desc
        limit $16
    ) as listed
    join idempotent_webhook.kept_deliveries as kept using (endpoint, tenant, delivery_id)
    order by kept.last_failed_at desc, kept.delivery_id desc, kept.tenant desc, kept.endpoint desc
"
);

/// The due deliveries, in the order of their next attempts.
const DUE: &str = concat!(
    "
    select listed.*
    from unnest($1::text[]) as known (endpoint)
    cross join lateral (
        select ",
    columns!(),
    "
        from idempotent_webhook.kept_deliveries as kept
        where kept.endpoint = known.endpoint and kept.state = 'due'
            and (
                $2::float8 is null
                or (kept.next_attempt_at, kept.delivery_id, kept.tenant, kept.endpoint)
                    > (to_timestamp($2), $3, $4, $5)
            )
        order by kept.next_attempt_at, kept.delivery_id, kept.tenant
        limit $6
    ) as listed
    order by listed.next_attempt_at, listed.delivery_id, listed.tenant, listed.endpoint
    limit $6
"
);

pub(super) async fn list(
    connection: &mut PgConnection,
    access: &Access,
    endpoints: &[String],
    selection: &Selection,
    cursor: Option<Cursor>,
) -> sqlx::Result<Listed<Delivery>> {
    if selection.is_by_next_attempt() {
        let due = sqlx::query(DUE).bind(endpoints);
        let due = bind(cursor.as_ref(), due).bind(PAGE as i64 + 1);
        let rows = read_all(&due.fetch_all(connection).await?, access)?;
        return Ok(Listed::new(rows, None, |delivery: &Delivery| {
            place(delivery.next_attempt, delivery)
        }));
    }
    let mut search = Search::new(endpoints.len() * selection.states().len());
    let (mut rows, mut after) = (Vec::new(), cursor);
    loop {
        let mut searched_to = None;
        if selection.is_searched() {
            let edge = indexed(SEARCHED_TO, endpoints, selection, after.as_ref())
                .bind(search.each)
                .fetch_optional(&mut *connection)
                .await?;
            searched_to = edge.as_ref().map(Cursor::read).transpose()?;
        }
        let failed = indexed(FAILED, endpoints, selection, after.as_ref());
        let failed = bind(searched_to.as_ref(), failed)
            .bind(&selection.tenants)
            .bind((PAGE + 1 - rows.len()) as i64);
        let failed = failed.fetch_all(&mut *connection).await?;
        rows.append(&mut read_all(&failed, access)?);
        if rows.len() > PAGE || searched_to.is_none() || !search.goes_on() {
            return Ok(Listed::new(rows, searched_to, |delivery: &Delivery| {
                place(delivery.last_failed, delivery)
            }));
        }
        after = searched_to;
    }
}

fn place(at: Option<Timestamp>, delivery: &Delivery) -> Option<Cursor> {
    at.map(|Timestamp(at)| Cursor::new(at, &delivery.key))
}

fn read_all(rows: &[PgRow], access: &Access) -> sqlx::Result<Vec<Delivery>> {
    rows.iter().map(|row| read(row, access)).collect()
}

/// A query with its first ten values bound.
fn indexed<'q>(
    sql: &'static str,
    endpoints: &'q [String],
    selection: &'q Selection,
    cursor: Option<&'q Cursor>,
) -> Query<'q, Postgres, PgArguments> {
    let query = sqlx::query(sql)
        .bind(endpoints)
        .bind(selection.states())
        .bind(&selection.reason)
        .bind(&selection.event_type);
    bind(cursor, query)
        .bind(selection.from.map(|Timestamp(from)| from))
        .bind(selection.until.map(|Timestamp(until)| until))
}

fn read(row: &PgRow, access: &Access) -> sqlx::Result<Delivery> {
    let time = |column| -> sqlx::Result<Option<Timestamp>> {
        Ok(row.try_get::<Option<f64>, _>(column)?.map(Timestamp))
    };
    let key = Key::read(row)?;
    let reason: Option<String> = row.try_get("reason")?;
    let is_running = row.try_get::<Option<bool>, _>("running")?.unwrap_or(false);
    Ok(Delivery {
        tenant: row
            .try_get::<Option<String>, _>("tenant_name")?
            .or(key.tenant().map(str::to_owned)),
        key,
        event_type: row.try_get("event_type")?,
        state: match is_running {
            true => "running".to_owned(),
            false => row.try_get("state")?,
        },
        attempts: Some(row.try_get("attempts")?),
        status: row.try_get("status")?,
        reason: reason.map(|reason| access.reason(reason)),
        last_failed: time("failed_at")?,
        next_attempt: time("next_at")?,
        processed: None,
        has_request: None,
    })
}
