//! The kept deliveries that are due.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{Method, Request, Uri};
use http_body_util::Full;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::keep::interval;
use super::replay::{Kept, Replay};
use super::request::{FORMAT, decode};
use super::schedule::MAX_DELAY;
use super::served::Served;
use super::slots::Room;
use crate::transaction::{DatabaseError, Store};

/// The deliveries of an endpoint that are due longest; one, if it is a probe. They are counted and
/// leased before they run, so that one whose handler kills the process uses up its attempts.
/// The commit waits for the disk: a handler that makes Postgres crash uses up its attempts, too.
///
/// `$6` of them can begin at once, and `$7` wait for a slot. These are at their first attempt of the
/// schedule: if the process is killed meanwhile, a delivery loses an attempt this way once at most.
/// The order stays that of their times: none is taken past one that needs a free slot.
///
/// How many are looked at is a number in the text, for the planner to know that it is a small one.
macro_rules! take_of {
    ($limit:literal) => {
        concat!(
            "
    with due as (
        select kept.endpoint, kept.tenant, kept.delivery_id, kept.next_attempt_at, kept.retries
        from idempotent_webhook.kept_deliveries as kept
        where kept.endpoint = $1
            and kept.state = 'due'
            and kept.next_attempt_at <= now()
            and (kept.running_until is null or kept.running_until <= now())
            -- Not an `exists`, which the planner could turn into a join of all of them.
            and (
                select request.format
                from idempotent_webhook.kept_requests as request
                where request.endpoint = kept.endpoint
                    and request.tenant = kept.tenant
                    and request.delivery_id = kept.delivery_id
            ) = $3
            and not exists (
                select
                from idempotent_webhook.kept_endpoints as state
                where state.endpoint = $1
                    and (
                        state.paused_at is not null
                        or cardinality(state.failed_ids) >= $4 and state.probe_at > now()
                    )
            )
        order by kept.next_attempt_at
        limit ",
            $limit,
            "
        for update of kept skip locked
    ),
    numbered as (
        select *, row_number() over (order by next_attempt_at) as number
        from due
    ),
    breaker as (
        select exists (
            select
            from idempotent_webhook.kept_endpoints as state
            where state.endpoint = $1 and cardinality(state.failed_ids) >= $4
        ) as is_open
    ),
    room as (
        select
            is_open,
            case when is_open then 1 else $6::bigint + $7::bigint end as places,
            (
                select min(number)
                from numbered
                where number > $6 and (retries > 0 or is_open)
            ) as needs_a_slot
        from breaker
    ),
    taken as (
        select endpoint, tenant, delivery_id
        from numbered
        cross join room
        where number <= places and (needs_a_slot is null or number < needs_a_slot)
    ),
    probe as (
        update idempotent_webhook.kept_endpoints
        set probe_at = now() + $5
        where endpoint = $1 and cardinality(failed_ids) >= $4 and exists (select from taken)
    ),
    counted as (
        update idempotent_webhook.kept_deliveries as kept
        set attempts = kept.attempts + 1,
            retries = kept.retries + 1,
            running_until = now() + $2
        from taken
        join idempotent_webhook.kept_requests as request using (endpoint, tenant, delivery_id)
        where kept.endpoint = taken.endpoint
            and kept.tenant = taken.tenant
            and kept.delivery_id = taken.delivery_id
        returning
            kept.tenant, kept.tenant_name, kept.delivery_id, kept.event_type, kept.attempts,
            kept.retries, kept.next_attempt_at,
            extract(epoch from kept.first_received_at)::float8 as first_received_at,
            extract(epoch from request.signed_at)::float8 as signed_at,
            request.method, request.uri, request.headers, request.body
    )
    select
        coalesce(room.needs_a_slot <= room.places, false) as passed_over,
        room.is_open,
        counted.*
    from room
    left join counted on true
    order by counted.retries desc, counted.next_attempt_at
"
        )
    };
}

/// Each row that is looked at is locked, so not many more than there is room for.
const TAKE: [(usize, &str); 3] = [(4, take_of!(4)), (8, take_of!(8)), (16, take_of!(16))];

/// Of each endpoint that has deliveries to run again: in how many seconds the next one can be taken,
/// unless the endpoint is paused, and for how many seconds it has been due.
const NEXT: &str = "
    select
        served.endpoint,
        case when state.paused_at is null then
            extract(epoch from greatest(due.next_attempt_at, state.probe_at) - now())::float8
        end as wait,
        extract(epoch from now() - due.next_attempt_at)::float8 as overdue
    from unnest($1::text[]) as served (endpoint)
    left join lateral (
        select paused_at, case when cardinality(failed_ids) >= $2 then probe_at end as probe_at
        from idempotent_webhook.kept_endpoints
        where kept_endpoints.endpoint = served.endpoint
    ) as state on true
    cross join lateral (
        select kept.next_attempt_at
        from idempotent_webhook.kept_deliveries as kept
        where kept.endpoint = served.endpoint
            and kept.state = 'due'
            and (kept.running_until is null or kept.running_until <= now())
            and (
                select request.format
                from idempotent_webhook.kept_requests as request
                where request.endpoint = kept.endpoint
                    and request.tenant = kept.tenant
                    and request.delivery_id = kept.delivery_id
            ) = $3
        order by kept.next_attempt_at
        limit 1
    ) as due
";

/// When recovery holds back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Breaker {
    /// After this many failures in a row, attempts are probes.
    pub(super) failures: i32,
    /// The time between two probes.
    pub(super) probe_interval: Duration,
}

/// An attempt that is counted and has to be made.
pub(super) struct Due {
    pub(super) replay: Replay,
    /// `None` if what was kept cannot be read.
    pub(super) request: Option<Request<Full<Bytes>>>,
}

/// What has been taken of an endpoint.
pub(super) struct Taken {
    /// Those that may only begin at once come first.
    pub(super) due: Vec<Due>,
    /// Whether another one would have been taken if there had been a free slot for it.
    pub(super) passed_over: bool,
}

/// Counts the next attempts at deliveries of this endpoint, at most 16: as many as can begin at
/// once, and as many as may wait for a slot.
pub(super) async fn take(
    store: &Store,
    served: &Served,
    breaker: Breaker,
    room: &Room,
) -> Result<Taken, DatabaseError> {
    let number = |places: usize| i64::try_from(places).unwrap_or(i64::MAX / 2);
    let places = room.slots().saturating_add(room.places_ahead());
    let [.., (_, largest)] = TAKE;
    let enough = TAKE.iter().find(|(limit, _)| *limit >= places);
    let statement = sqlx::query(enough.map_or(largest, |(_, sql)| sql))
        .bind(&*served.endpoint)
        .bind(interval(served.lease()))
        .bind(FORMAT)
        .bind(breaker.failures)
        .bind(interval(breaker.probe_interval.min(MAX_DELAY)))
        .bind(number(room.slots()))
        .bind(number(room.places_ahead()));
    let rows = store.run(statement).await?;
    let mut taken = Taken {
        due: Vec::new(),
        passed_over: false,
    };
    for row in &rows {
        taken.passed_over = row.try_get("passed_over")?;
        served.set_probed(row.try_get("is_open")?);
        // There is always a row, without a delivery if none was taken.
        if row.try_get::<Option<&str>, _>("delivery_id")?.is_some() {
            taken.due.push(read(row, served.endpoint.clone(), breaker)?);
        }
    }
    Ok(taken)
}

/// The delivery of an endpoint that is to be run next.
pub(super) struct Upcoming {
    pub(super) endpoint: String,
    /// Until it can be taken. `None` while the endpoint is paused.
    pub(super) wait: Option<Duration>,
    /// For how long it has been due.
    pub(super) overdue: Duration,
}

/// The next delivery of each of these endpoints that has one.
pub(super) async fn upcoming(
    store: &Store,
    endpoints: &[&str],
    breaker: Breaker,
) -> Result<Vec<Upcoming>, DatabaseError> {
    let statement = sqlx::query(NEXT)
        .bind(endpoints)
        .bind(breaker.failures)
        .bind(FORMAT);
    let seconds =
        |seconds: f64| Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
    let read = |row: &PgRow| -> sqlx::Result<_> {
        Ok(Upcoming {
            endpoint: row.try_get("endpoint")?,
            wait: row.try_get::<Option<f64>, _>("wait")?.map(seconds),
            overdue: seconds(row.try_get("overdue")?),
        })
    };
    let rows = store.run(statement).await?;
    Ok(rows.iter().map(read).collect::<sqlx::Result<_>>()?)
}

fn read(row: &PgRow, endpoint: Arc<str>, breaker: Breaker) -> sqlx::Result<Due> {
    let count =
        |column| -> sqlx::Result<u32> { Ok(row.try_get::<i32, _>(column)?.max(0).cast_unsigned()) };
    let time = |seconds: f64| {
        let since = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        SystemTime::UNIX_EPOCH + since
    };
    let replay = Replay::new(Kept {
        endpoint,
        key_tenant: row.try_get("tenant")?,
        tenant_name: row.try_get("tenant_name")?,
        delivery_id: row.try_get("delivery_id")?,
        event_type: row.try_get("event_type")?,
        signed_at: row.try_get::<Option<f64>, _>("signed_at")?.map(time),
        attempt: count("attempts")?,
        retries: count("retries")?,
        first_received_at: time(row.try_get("first_received_at")?),
        held_by_failures: (!row.try_get::<bool, _>("is_open")?).then_some(breaker.failures),
    });
    let request = request_of(row, replay.clone())?;
    Ok(Due { replay, request })
}

fn request_of(row: &PgRow, replay: Replay) -> sqlx::Result<Option<Request<Full<Bytes>>>> {
    let method: String = row.try_get("method")?;
    let uri: String = row.try_get("uri")?;
    let headers: Vec<u8> = row.try_get("headers")?;
    let body: Vec<u8> = row.try_get("body")?;
    let (Ok(method), Ok(uri), Some(headers)) = (
        method.parse::<Method>(),
        uri.parse::<Uri>(),
        decode(&headers),
    ) else {
        return Ok(None);
    };
    let mut request = Request::new(Full::from(body));
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    request.extensions_mut().insert(replay);
    Ok(Some(request))
}
