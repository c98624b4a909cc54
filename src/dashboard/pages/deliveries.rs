//! The list of kept deliveries.

use axum::response::Response;
use maud::{Markup, html};
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{PgConnection, Postgres, Row};

use super::super::error::PageError;
use super::super::html::{Layout, Timestamp, empty, hidden, pages, short, state, status, visible};
use super::super::params::{Link, Params};
use super::super::rows::{self, Key};
use super::super::selection::{Selection, State};
use super::super::{Access, Shared};

const PAGE: i64 = 50;

/// What a row of the list has. The alias `kept` is a row of `kept_deliveries`.
macro_rules! columns {
    () => {
        "kept.endpoint, kept.tenant, kept.delivery_id, kept.tenant_name, kept.event_type,
        kept.state, kept.attempts, kept.status, left(kept.reason, 300) as reason,
        kept.last_failed_at, kept.next_attempt_at,
        kept.taken_at is not null as running,
        extract(epoch from kept.last_failed_at)::float8 as failed_at,
        extract(epoch from kept.next_attempt_at)::float8 as next_at"
    };
}

/// Those that have failed, the latest first: of each endpoint and state, the next of the index. Each
/// filter has its index. The rest of a row is read once it is on the page.
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
            select kept.endpoint, kept.tenant, kept.delivery_id, kept.last_failed_at
            from idempotent_webhook.kept_deliveries as kept
            where kept.endpoint = known.endpoint and kept.state = states.state
                and kept.last_failed_at is not null
                and ($3::text is null or kept.reason_group = $3::text::uuid)
                and ($4::text is null or kept.event_type = $4)
                and (
                    $5::float8 is null
                    or (kept.last_failed_at, kept.delivery_id, kept.tenant, kept.endpoint)
                        < (to_timestamp($5), $6, $7, $8)
                )
            order by kept.last_failed_at desc, kept.delivery_id desc, kept.tenant desc
            limit $9
        ) as chosen
        order by chosen.last_failed_at desc, chosen.delivery_id desc, chosen.tenant desc,
            chosen.endpoint desc
        limit $9
    ) as listed
    join idempotent_webhook.kept_deliveries as kept using (endpoint, tenant, delivery_id)
    order by kept.last_failed_at desc, kept.delivery_id desc, kept.tenant desc, kept.endpoint desc
"
);

/// Those that are due, the next one first.
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

struct Delivery {
    key: Key,
    tenant_name: Option<String>,
    event_type: Option<String>,
    state: String,
    is_running: bool,
    attempts: i32,
    status: Option<i16>,
    reason: Option<String>,
    failed_at: Option<f64>,
    next_at: Option<f64>,
}

impl Delivery {
    fn read(row: &PgRow) -> sqlx::Result<Self> {
        Ok(Self {
            key: Key::read(row)?,
            tenant_name: row.try_get("tenant_name")?,
            event_type: row.try_get("event_type")?,
            state: row.try_get("state")?,
            is_running: row.try_get::<Option<bool>, _>("running")?.unwrap_or(false),
            attempts: row.try_get("attempts")?,
            status: row.try_get("status")?,
            reason: row.try_get("reason")?,
            failed_at: row.try_get("failed_at")?,
            next_at: row.try_get("next_at")?,
        })
    }
}

/// Where a page of the list ends.
struct Cursor {
    at: f64,
    key: Key,
}

impl Cursor {
    fn of(params: &Params) -> Option<Self> {
        Some(Self {
            at: params.seconds("after")?,
            key: Key {
                endpoint: params.get("after_endpoint")?.to_owned(),
                tenant: params.get("after_tenant").unwrap_or_default().to_owned(),
                id: params.get("after_id")?.to_owned(),
            },
        })
    }

    fn add_to(&self, link: Link) -> Link {
        link.with("after", self.at)
            .with("after_endpoint", &self.key.endpoint)
            .with_some("after_tenant", self.key.tenant())
            .with("after_id", &self.key.id)
    }
}

pub(in crate::dashboard) async fn deliveries(
    shared: &Shared,
    access: &Access,
    layout: Layout,
    params: &Params,
) -> Result<Response, PageError> {
    let mut selection = Selection::of(params)?;
    let mut reading = shared.database.read().await?;
    let now = Timestamp(rows::now(&mut reading).await?);
    let known = rows::endpoints(&mut reading).await?;
    let endpoints = match selection.endpoint.clone() {
        Some(endpoint) => vec![endpoint],
        None => known.clone(),
    };
    selection.look_up_reason(&mut reading, &endpoints).await?;
    let cursor = Cursor::of(params);
    let cursor = cursor.as_ref();
    let mut deliveries = list(&mut reading, &endpoints, &selection, cursor).await?;
    let is_full = deliveries.len() as i64 > PAGE;
    reading.end().await?;

    deliveries.truncate(PAGE.unsigned_abs() as usize);
    let first = selection.link("deliveries");
    let next = deliveries.last().filter(|_| is_full).and_then(|last| {
        let at = if selection.is_by_next_attempt() {
            last.next_at
        } else {
            last.failed_at
        };
        let key = last.key.clone();
        Some(Cursor { at: at?, key }.add_to(first.clone()))
    });
    let content = html! {
        (filters(&selection, &known))
        @if let Some(reason) = &selection.reason_example {
            p { "With a reason like “" span.reason { (visible(reason)) } "”." }
        }
        @if access.may_operate() { (bulk_actions(&selection, now)) }
        @if !deliveries.is_empty() {
            (table(&deliveries, &selection, now, access.may_operate()))
        } @else {
            (empty(selection.meaning_of_nothing()))
        }
        (pages(params, first, next))
    };
    Ok(layout.page("Deliveries", content))
}

async fn list(
    connection: &mut PgConnection,
    endpoints: &[String],
    selection: &Selection,
    cursor: Option<&Cursor>,
) -> sqlx::Result<Vec<Delivery>> {
    let query = if selection.is_by_next_attempt() {
        sqlx::query(DUE).bind(endpoints)
    } else {
        failures(FAILED, endpoints, selection)
    };
    let rows = after(cursor, query)
        .bind(PAGE + 1)
        .fetch_all(connection)
        .await?;
    rows.iter().map(Delivery::read).collect()
}

fn failures<'q>(
    sql: &'static str,
    endpoints: &'q [String],
    selection: &'q Selection,
) -> Query<'q, Postgres, PgArguments> {
    sqlx::query(sql)
        .bind(endpoints)
        .bind(selection.states())
        .bind(&selection.reason)
        .bind(&selection.event_type)
}

fn after<'q>(
    cursor: Option<&'q Cursor>,
    query: Query<'q, Postgres, PgArguments>,
) -> Query<'q, Postgres, PgArguments> {
    let key = cursor.map(|cursor| &cursor.key);
    query
        .bind(cursor.map(|cursor| cursor.at))
        .bind(key.map(|key| &key.id))
        .bind(key.map(|key| &key.tenant))
        .bind(key.map(|key| &key.endpoint))
}

fn filters(selection: &Selection, known: &[String]) -> Markup {
    let states = [
        (State::Failing, "Failing"),
        (State::Dead, "Dead"),
        (State::Due, "Due"),
        (State::Recorded, "Recorded only"),
    ];
    html! {
        form.filters action="deliveries" {
            label {
                "Endpoint "
                select name="endpoint" {
                    option value="" { "All" }
                    @for endpoint in known {
                        option value=(endpoint)
                            selected[selection.endpoint.as_ref() == Some(endpoint)]
                        {
                            (visible(endpoint))
                        }
                    }
                    // One that is not known is not silently another one.
                    @if let Some(endpoint) = &selection.endpoint && !known.contains(endpoint) {
                        option value=(endpoint) selected { (visible(endpoint)) }
                    }
                }
            }
            label {
                "State "
                select name="state" {
                    @for (value, name) in states {
                        option value=(value.as_str()) selected[selection.state == value] { (name) }
                    }
                }
            }
            label {
                "Event type "
                input name="event_type" value=[&selection.event_type] autocomplete="off"
                    spellcheck="false";
            }
            (hidden(&[("reason", selection.reason.as_deref())]))
            button { "Show" }
            @if selection.reason.is_some() {
                a href=(selection.without_reason().link("deliveries")) { "Any reason" }
            }
        }
    }
}

fn bulk_actions(selection: &Selection, now: Timestamp) -> Markup {
    let confirm = |action: &str| {
        selection
            .link("confirm")
            .with("action", action)
            .with("before", now.0)
    };
    html! {
        @if selection.is_for_bulk_actions() {
            p.actions {
                @if selection.state != State::Recorded {
                    a.button href=(confirm("retry")) { "Retry all of these…" }
                    " "
                }
                a.button.danger href=(confirm("discard")) { "Discard all of these…" }
            }
        } @else if selection.endpoint.is_none() {
            p.muted { "Choose an endpoint to retry or discard all of its deliveries." }
        }
    }
}

fn table(
    deliveries: &[Delivery],
    selection: &Selection,
    now: Timestamp,
    may_operate: bool,
) -> Markup {
    let table = html! {
        div.scroll {
            table.deliveries {
                thead {
                    tr {
                        @if may_operate { th scope="col" { span.hidden { "Selected" } } }
                        th scope="col" { "Delivery" }
                        @if selection.endpoint.is_none() { th scope="col" { "Endpoint" } }
                        th scope="col" { "Event type" }
                        th scope="col" { "State" }
                        th.number scope="col" { "Attempts" }
                        th scope="col" { "Last failed" }
                        th scope="col" { "Next attempt" }
                        th scope="col" { "Status" }
                        th scope="col" { "Reason" }
                    }
                }
                tbody {
                    @for delivery in deliveries {
                        (row(delivery, selection, now, may_operate))
                    }
                }
            }
        }
    };
    if !may_operate {
        return table;
    }
    html! {
        form.selection method="post" action="confirm" {
            (hidden(&selection.fields()))
            (table)
            p.actions {
                button name="action" value="retry" { "Retry the selected…" }
                " "
                button.danger name="action" value="discard" { "Discard the selected…" }
            }
        }
    }
}

fn row(delivery: &Delivery, selection: &Selection, now: Timestamp, may_operate: bool) -> Markup {
    let key = &delivery.key;
    html! {
        tr {
            @if may_operate {
                td {
                    input type="checkbox" name="key" value=(key.link("").query())
                        aria-label=(format!("Delivery {}", visible(&key.id)));
                }
            }
            td.id {
                a href=(key.link("delivery")) { (short(&key.id, 60)) }
                @if let Some(tenant) = delivery.tenant_name.as_deref().or(key.tenant()) {
                    " " span.muted { (short(tenant, 40)) }
                }
            }
            @if selection.endpoint.is_none() { td { (visible(&key.endpoint)) } }
            td { (short(delivery.event_type.as_deref().unwrap_or_default(), 60)) }
            td { (state(if delivery.is_running { "running" } else { &delivery.state })) }
            td.number { (delivery.attempts) }
            td { @if let Some(at) = delivery.failed_at { (Timestamp(at).with_age(now)) } }
            td {
                @if delivery.state == "due" && !delivery.is_running
                    && let Some(at) = delivery.next_at { (Timestamp(at).with_age(now)) }
            }
            td { (status(delivery.status)) }
            td.reason { (short(delivery.reason.as_deref().unwrap_or_default(), 100)) }
        }
    }
}
