//! A delivery: its state, its attempts, its request.

use axum::body::Body;
use axum::response::Response;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderValue};
use maud::{Markup, html};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use super::super::error::PageError;
use super::super::html::{
    Layout, Timestamp, button, code, empty, facts, hidden_code, short, state, status, visible,
};
use super::super::operate::audit;
use super::super::params::Params;
use super::super::rows::{self, Key, grouped};
use super::super::{Access, Shared};

/// How much of a payload is shown, in bytes.
const SHOWN: i32 = 64 * 1024;

const PROCESSED: &str = "
    select extract(epoch from received_at)::float8 as processed_at, event_type
    from idempotent_webhook.deliveries
    where endpoint = $1 and tenant = $2 and delivery_id = $3
";

/// What else is known of a delivery. It is in flight if somebody holds the lock of its claim, whose number
/// `pg_locks` has in two halves.
const DELIVERY: &str = "
    select
        kept.state,
        kept.tenant_name,
        kept.event_type,
        kept.attempts,
        kept.status,
        kept.reason,
        kept.taken_at is not null as running,
        extract(epoch from kept.first_received_at)::float8 as first_received_at,
        extract(epoch from kept.first_failed_at)::float8 as first_failed_at,
        extract(epoch from kept.last_failed_at)::float8 as last_failed_at,
        extract(epoch from kept.next_attempt_at)::float8 as next_attempt_at,
        state.paused_at is not null as paused,
        request.method,
        request.uri,
        request.headers,
        octet_length(request.body) as body_bytes,
        exists (
            select
            from pg_locks
            where locktype = 'advisory' and objsubid = 1
                and database = (select oid from pg_database where datname = current_database())
                and (classid::int8 << 32) | objid::int8 = hashtextextended(
                    $3, hashtextextended($2, hashtextextended($1, 0))
                )
                and granted
        ) as in_flight
    from (select) as one
    left join idempotent_webhook.kept_deliveries as kept
        on kept.endpoint = $1 and kept.tenant = $2 and kept.delivery_id = $3
    left join idempotent_webhook.kept_requests as request
        on request.endpoint = $1 and request.tenant = $2 and request.delivery_id = $3
    left join idempotent_webhook.kept_endpoints as state
        on state.endpoint = $1
";

/// The failed attempts, the latest first.
const HISTORY: &str = "
    select attempt.at, attempt.by, attempt.status, attempt.reason
    from idempotent_webhook.kept_deliveries as kept
    cross join lateral rows from (
        jsonb_to_recordset(kept.history) as (at float8, by text, status int2, reason text)
    ) with ordinality as attempt (at, by, status, reason, number)
    where kept.endpoint = $1 and kept.tenant = $2 and kept.delivery_id = $3
    order by attempt.number desc
";

const BODY: &str = "
    select case when $4::int4 is null then body else substring(body from 1 for $4) end
    from idempotent_webhook.kept_requests
    where endpoint = $1 and tenant = $2 and delivery_id = $3
";

/// What is known of a delivery.
struct Delivery {
    processed_at: Option<f64>,
    kept: Option<Kept>,
    request: Option<Request>,
    event_type: Option<String>,
    is_paused: bool,
    is_in_flight: bool,
}

/// A row of `kept_deliveries`.
struct Kept {
    state: String,
    tenant_name: Option<String>,
    attempts: i32,
    status: Option<i16>,
    reason: Option<String>,
    is_running: bool,
    first_received_at: f64,
    first_failed_at: Option<f64>,
    last_failed_at: Option<f64>,
    next_attempt_at: Option<f64>,
    history: Vec<Attempt>,
}

struct Attempt {
    at: f64,
    by: String,
    status: Option<i16>,
    reason: Option<String>,
}

/// A row of `kept_requests`, without its body.
struct Request {
    method: String,
    uri: String,
    headers: Vec<u8>,
    body_bytes: i32,
}

impl Delivery {
    async fn read(connection: &mut PgConnection, key: &Key) -> sqlx::Result<Self> {
        let processed = of_key(PROCESSED, key);
        let processed = processed.fetch_optional(&mut *connection).await?;
        let row = of_key(DELIVERY, key).fetch_one(&mut *connection).await?;
        let history = of_key(HISTORY, key).fetch_all(&mut *connection).await?;
        let history = history
            .iter()
            .map(Attempt::read)
            .collect::<sqlx::Result<_>>()?;
        let mut event_type: Option<String> = row.try_get("event_type")?;
        let mut processed_at = None;
        if let Some(processed) = processed {
            processed_at = processed.try_get("processed_at")?;
            event_type = event_type.or(processed.try_get("event_type")?);
        }
        Ok(Self {
            processed_at,
            event_type,
            kept: Kept::read(&row, history)?,
            request: Request::read(&row)?,
            is_paused: row.try_get("paused")?,
            is_in_flight: row.try_get("in_flight")?,
        })
    }

    fn is_known(&self) -> bool {
        self.processed_at.is_some() || self.kept.is_some() || self.is_in_flight
    }

    /// The state in one word. What was processed is done, whatever is kept.
    fn state(&self) -> &str {
        match &self.kept {
            _ if self.processed_at.is_some() => "processed",
            _ if self.is_in_flight => "in flight",
            Some(kept) if kept.is_running => "running",
            Some(kept) if kept.state == "due" && self.is_paused => "paused",
            Some(kept) => &kept.state,
            None => "unknown",
        }
    }

    /// It was accepted first.
    fn has_not_failed(&self) -> bool {
        let kept = self.kept.as_ref();
        kept.is_some_and(|kept| kept.last_failed_at.is_none())
    }

    fn meaning(&self) -> &'static str {
        match self.state() {
            "processed" => "Its handler has succeeded, and what it wrote is committed.",
            "in flight" => "An attempt at it is running right now.",
            "running" => {
                "An attempt at it has begun. If its process was killed, the next one comes within seconds."
            }
            "due" if self.has_not_failed() => "It is accepted, and waits for its first attempt.",
            "due" => {
                "It has failed, and runs again at the time of the next attempt. While its endpoint is \
                 probed, it may have to wait for longer."
            }
            "paused" => "It runs again once its endpoint is resumed.",
            "dead" => "It runs again only if somebody retries it, or the provider sends it again.",
            "recorded" => {
                "It has failed, and its request is not kept. It is processed if the provider \
                 delivers it again."
            }
            _ => "",
        }
    }
}

impl Kept {
    fn read(row: &PgRow, history: Vec<Attempt>) -> sqlx::Result<Option<Self>> {
        let Some(state) = row.try_get("state")? else {
            return Ok(None);
        };
        Ok(Some(Self {
            state,
            tenant_name: row.try_get("tenant_name")?,
            attempts: row.try_get("attempts")?,
            status: row.try_get("status")?,
            reason: row.try_get("reason")?,
            is_running: row.try_get::<Option<bool>, _>("running")?.unwrap_or(false),
            first_received_at: row.try_get("first_received_at")?,
            first_failed_at: row.try_get("first_failed_at")?,
            last_failed_at: row.try_get("last_failed_at")?,
            next_attempt_at: row.try_get("next_attempt_at")?,
            history,
        }))
    }
}

impl Attempt {
    fn read(row: &PgRow) -> sqlx::Result<Self> {
        Ok(Self {
            at: row.try_get("at")?,
            by: row.try_get("by")?,
            status: row.try_get("status")?,
            reason: row.try_get("reason")?,
        })
    }
}

impl Request {
    fn read(row: &PgRow) -> sqlx::Result<Option<Self>> {
        let Some(method) = row.try_get("method")? else {
            return Ok(None);
        };
        Ok(Some(Self {
            method,
            uri: row.try_get("uri")?,
            headers: row.try_get("headers")?,
            body_bytes: row.try_get("body_bytes")?,
        }))
    }
}

type KeyQuery<'q> = sqlx::query::Query<'q, sqlx::Postgres, sqlx::postgres::PgArguments>;

/// A statement whose first values are those of a key.
fn of_key<'q>(sql: &'static str, key: &'q Key) -> KeyQuery<'q> {
    sqlx::query(sql)
        .bind(&key.endpoint)
        .bind(&key.tenant)
        .bind(&key.id)
}

async fn body(
    connection: &mut PgConnection,
    key: &Key,
    limit: Option<i32>,
) -> sqlx::Result<Option<Vec<u8>>> {
    let row = of_key(BODY, key)
        .bind(limit)
        .fetch_optional(connection)
        .await?;
    row.map(|row| row.try_get(0)).transpose()
}

pub(in crate::dashboard) async fn delivery(
    shared: &Shared,
    access: &Access,
    layout: Layout,
    params: &Params,
) -> Result<Response, PageError> {
    let key = Key::of(params).ok_or(MISSING_KEY)?;
    let mut reading = shared.database.read().await?;
    let now = Timestamp(rows::now(&mut reading).await?);
    let delivery = Delivery::read(&mut reading, &key).await?;
    let payload = match &delivery.request {
        Some(_) if access.may_see_payloads() => body(&mut reading, &key, Some(SHOWN)).await?,
        _ => None,
    };
    let actions = audit::of_delivery(&mut reading, &key).await?;
    reading.end().await?;
    if !delivery.is_known() && actions.is_empty() {
        return Err(PageError::not_found(
            "There is no such delivery. It was never received, or it has been deleted since.",
        ));
    }
    let content = html! {
        p.lead { (state(delivery.state())) " " (delivery.meaning()) }
        @if access.may_operate() { (buttons(&delivery, &key)) }
        (about(&delivery, &key, now))
        @if let Some(kept) = &delivery.kept {
            h2 { "Failed attempts" }
            (history(kept, now))
        }
        h2 { "Request" }
        (request(&delivery, access, &key, payload.as_deref()))
        @if !actions.is_empty() {
            h2 { "What operators did" }
            (super::actions::table(&actions, now))
        }
    };
    Ok(layout.page("Delivery", content))
}

const MISSING_KEY: PageError = PageError::bad_request("An endpoint and an id are needed.");

fn about(delivery: &Delivery, key: &Key, now: Timestamp) -> Markup {
    let time = |at: Option<f64>| at.map(|at| Timestamp(at).with_age(now));
    let kept = delivery.kept.as_ref();
    let tenant = kept.and_then(|kept| kept.tenant_name.as_deref());
    // Not while an attempt runs, or after the last one.
    let next = kept
        .filter(|kept| kept.state == "due" && !kept.is_running && delivery.processed_at.is_none());
    facts(&[
        ("Delivery id", Some(html! { code { (visible(&key.id)) } })),
        ("Endpoint", Some(html! { (visible(&key.endpoint)) })),
        (
            "Tenant",
            tenant
                .or(key.tenant())
                .map(|tenant| html! { (visible(tenant)) }),
        ),
        (
            "Event type",
            delivery
                .event_type
                .as_deref()
                .map(|event_type| html! { (visible(event_type)) }),
        ),
        ("Processed", time(delivery.processed_at)),
        (
            "First received",
            time(kept.map(|kept| kept.first_received_at)),
        ),
        ("Attempts", kept.map(|kept| html! { (kept.attempts) })),
        (
            "First failed",
            time(kept.and_then(|kept| kept.first_failed_at)),
        ),
        (
            "Last failed",
            time(kept.and_then(|kept| kept.last_failed_at)),
        ),
        (
            "Next attempt",
            time(next.and_then(|kept| kept.next_attempt_at)),
        ),
        (
            "Last status",
            kept.and_then(|kept| kept.status)
                .map(|code| status(Some(code))),
        ),
        (
            "Last reason",
            kept.and_then(|kept| kept.reason.as_deref())
                .map(|reason| html! { span.reason { (visible(reason)) } }),
        ),
    ])
}

fn buttons(delivery: &Delivery, key: &Key) -> Markup {
    let is_kept = delivery.processed_at.is_none() && delivery.kept.is_some();
    let can_run = is_kept && delivery.request.is_some();
    let [endpoint, tenant, id] = key.fields();
    html! {
        p.actions {
            @if can_run {
                (button(&html! { "Retry now" }, "act", &[
                    ("action", Some("retry")), endpoint, tenant, id,
                ]))
                " "
            }
            @if is_kept {
                a.button.danger href=(key.link("confirm").with("action", "discard")) { "Discard…" }
            }
            @if delivery.processed_at.is_some() {
                a.button href=(key.link("confirm").with("action", "forget")) { "Process again…" }
            }
        }
    }
}

fn history(kept: &Kept, now: Timestamp) -> Markup {
    let older = i64::from(kept.attempts) - i64::try_from(kept.history.len()).unwrap_or(0);
    html! {
        @if kept.history.is_empty() {
            (empty("None yet."))
        } @else {
            div.scroll {
                table {
                    thead {
                        tr {
                            th scope="col" { "Failed" }
                            th scope="col" { "By" }
                            th scope="col" { "Status" }
                            th scope="col" { "Reason" }
                        }
                    }
                    tbody {
                        @for attempt in &kept.history {
                            tr {
                                td { (Timestamp(attempt.at).with_age(now)) }
                                td { (attempt.by) }
                                td { (status(attempt.status)) }
                                td.reason {
                                    (short(attempt.reason.as_deref().unwrap_or_default(), 200))
                                }
                            }
                        }
                    }
                }
            }
            @if older > 0 {
                p.muted {
                    (older) " further attempt(s): running, ended without a result, or older than \
                             the last 20."
                }
            }
        }
    }
}

fn request(delivery: &Delivery, access: &Access, key: &Key, payload: Option<&[u8]>) -> Markup {
    let Some(request) = &delivery.request else {
        return empty("It is not kept. Requests are kept until their delivery is processed.");
    };
    let size = html! { (grouped(i64::from(request.body_bytes))) " bytes" };
    let about = [
        ("Method", Some(html! { (visible(&request.method)) })),
        // A query may have secrets, as a body may.
        (
            "URI",
            access
                .may_see_payloads()
                .then(|| html! { code { (visible(&request.uri)) } }),
        ),
        ("Body", Some(size)),
    ];
    html! {
        (facts(&about))
        @if access.may_see_payloads() {
            @let headers = String::from_utf8_lossy(&request.headers);
            h3 { "Kept headers" }
            dl.headers {
                @for line in headers.lines() {
                    @let (name, value) = line.split_once(": ").unwrap_or((line, ""));
                    div { dt { (visible(name)) } dd { (visible(value)) } }
                }
            }
            h3 { "Payload" }
            (code(payload.unwrap_or_default()))
            p.muted {
                @if request.body_bytes > SHOWN { "Only the first 64 KiB are shown. " }
                a href=(key.link("payload")) download { "Download the payload as it came" }
            }
        } @else {
            (hidden_code("You may not see the payload, the headers and the query."))
        }
    }
}

/// The payload as it came, which a browser only saves.
pub(in crate::dashboard) async fn payload(
    shared: &Shared,
    access: &Access,
    params: &Params,
) -> Result<Response, PageError> {
    if !access.may_see_payloads() {
        return Err(PageError::forbidden("You may not see payloads."));
    }
    let key = Key::of(params).ok_or(MISSING_KEY)?;
    let mut reading = shared.database.read().await?;
    let body = body(&mut reading, &key, None).await?;
    reading.end().await?;
    let Some(body) = body else {
        return Err(PageError::not_found("Its payload is not kept."));
    };
    let mut response = Response::new(Body::from(body));
    let headers = response.headers_mut();
    let binary = HeaderValue::from_static("application/octet-stream");
    headers.insert(CONTENT_TYPE, binary);
    let saved = HeaderValue::from_static("attachment; filename=\"payload.bin\"");
    headers.insert(CONTENT_DISPOSITION, saved);
    Ok(response)
}
