//! The first page: the endpoints, and what is failing.

use std::collections::BTreeMap;

use axum::response::Response;
use maud::{Markup, html};
use sqlx::{PgConnection, Row};

use super::super::database::Reading;
use super::super::error::PageError;
use super::super::html::{
    Hour, Layout, Timestamp, button, count, duration, empty, plot, short, state, status, visible,
};
use super::super::params::Link;
use super::super::rows::{self, Count, count_kept};
use super::super::{Access, Shared};
use crate::recovery::heartbeat::ABSENT_AFTER;

/// How many groups of reasons are shown.
const MAX_GROUPS: i64 = 50;

const HOURS: i64 = 24;

const HOUR: i64 = 3_600;

/// Of each endpoint `$1`. Its last success is known to the hour's last count of it.
const ENDPOINTS: &str = concat!(
    "
    select
        known.endpoint,
        state.paused_at is not null as paused,
        state.probe_at is not null as probing,
        extract(epoch from now() - state.served_at)::float8 as absent,
        (",
    count_kept!("kept.endpoint = known.endpoint and kept.state = 'due'"),
    ") as due,
        (",
    count_kept!(
        "kept.endpoint = known.endpoint and kept.state = 'dead' and kept.last_failed_at is not null"
    ),
    ") as dead,
        (",
    count_kept!(
        "kept.endpoint = known.endpoint and kept.state = 'recorded'
            and kept.last_failed_at is not null"
    ),
    ") as recorded,
        (
            select extract(epoch from now() - kept.next_attempt_at)::float8
            from idempotent_webhook.kept_deliveries as kept
            where kept.endpoint = known.endpoint and kept.state = 'due'
            order by kept.next_attempt_at
            limit 1
        ) as overdue
    from unnest($1::text[]) as known (endpoint)
    left join idempotent_webhook.kept_endpoints as state using (endpoint)
    order by known.endpoint
"
);

const ACTIVITY: &str = "
    select
        endpoint,
        extract(epoch from hour)::int8 as hour,
        source,
        outcome,
        count,
        extract(epoch from last_at)::float8 as last_at
    from idempotent_webhook.activity
    where endpoint = any($1) and hour > now() - interval '24 hours'
";

/// The last success of each endpoint, also if it is long ago.
const LAST_SUCCESS: &str = "
    select known.endpoint, extract(epoch from last.last_at)::float8 as last_at
    from unnest($1::text[]) as known (endpoint)
    cross join lateral (
        select last_at
        from idempotent_webhook.activity
        where activity.endpoint = known.endpoint and outcome = 'processed'
        order by hour desc, last_at desc
        limit 1
    ) as last
";

/// Failures by endpoint, state and reason. Each reason is looked up in the index, one after the
/// other, however many deliveries have it: the index is read from its end, where the first entry of a
/// reason is its latest.
const GROUPS: &str = concat!(
    "
    with recursive reasons as (
        select scope.endpoint, scope.state, first.reason_group, first.last_failed_at
        from (
            select endpoint, state
            from unnest($1::text[]) as known (endpoint)
            cross join unnest(array['dead', 'due', 'recorded']) as states (state)
        ) as scope
        cross join lateral (
            select kept.reason_group, kept.last_failed_at
            from idempotent_webhook.kept_deliveries as kept
            where kept.endpoint = scope.endpoint and kept.state = scope.state
                and kept.last_failed_at is not null and kept.reason_group is not null
            order by kept.reason_group desc, kept.last_failed_at desc
            limit 1
        ) as first
        union all
        select reasons.endpoint, reasons.state, next.reason_group, next.last_failed_at
        from reasons
        cross join lateral (
            select kept.reason_group, kept.last_failed_at
            from idempotent_webhook.kept_deliveries as kept
            where kept.endpoint = reasons.endpoint and kept.state = reasons.state
                and kept.last_failed_at is not null
                and kept.reason_group < reasons.reason_group
            order by kept.reason_group desc, kept.last_failed_at desc
            limit 1
        ) as next
    ),
    newest as (
        select
            reasons.endpoint, reasons.state, reasons.reason_group,
            latest.last_failed_at, latest.status, latest.reason,
            row_number() over (order by latest.last_failed_at desc) as number
        from (
            select *
            from (select * from reasons limit 1000) as reasons
            order by last_failed_at desc
            limit 4 * $2
        ) as reasons
        cross join lateral (
            select kept.last_failed_at, kept.status, kept.reason
            from idempotent_webhook.kept_deliveries as kept
            where kept.endpoint = reasons.endpoint and kept.state = reasons.state
                and kept.last_failed_at is not null
                and kept.reason_group = reasons.reason_group
            order by kept.last_failed_at desc
            limit 1
        ) as latest
    )
    select
        newest.endpoint, newest.state, newest.reason_group::text, newest.status,
        left(newest.reason, 300) as reason,
        extract(epoch from newest.last_failed_at)::float8 as last_failed_at,
        (
            select extract(epoch from kept.first_failed_at)::float8
            from idempotent_webhook.kept_deliveries as kept
            where kept.endpoint = newest.endpoint and kept.state = newest.state
                and kept.last_failed_at is not null
                and kept.reason_group = newest.reason_group
            order by kept.last_failed_at
            limit 1
        ) as since,
        (",
    count_kept!(
        "kept.endpoint = newest.endpoint and kept.state = newest.state
            and kept.last_failed_at is not null and kept.reason_group = newest.reason_group"
    ),
    ") as count
    from newest
    where newest.number <= $2
    order by newest.number
"
);

/// How an endpoint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Fine,
    Failing,
    Paused,
    Probing,
    Unhandled,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Failing => "failing",
            Self::Paused => "paused",
            Self::Probing => "probing",
            Self::Unhandled => "unhandled",
        }
    }

    fn meaning(self) -> &'static str {
        match self {
            Self::Fine => "Nothing waits for another attempt, or for an operator.",
            Self::Failing => {
                "Deliveries have failed. They wait for another attempt, or, if dead, for \
                              an operator."
            }
            Self::Paused => {
                "An operator has paused recovery. Requests are handled as before, but those that are \
                 accepted first are only kept."
            }
            Self::Probing => "Many failed in a row, so one delivery is tried at a time.",
            Self::Unhandled => "No process with a Recovery serves it, so what is due does not run.",
        }
    }
}

struct Endpoint {
    name: String,
    state: State,
    due: Count,
    dead: Count,
    recorded: Count,
    overdue: Option<f64>,
    last_success: Option<f64>,
    hours: Vec<Hour>,
}

struct Group {
    endpoint: String,
    state: String,
    reason_group: String,
    status: Option<i16>,
    reason: Option<String>,
    since: Option<f64>,
    last_failed_at: f64,
    count: Count,
}

pub(in crate::dashboard) async fn overview(
    shared: &Shared,
    access: &Access,
    layout: Layout,
) -> Result<Response, PageError> {
    let mut reading = shared.database.read().await?;
    let now = rows::now(&mut reading).await?;
    let names = rows::endpoints(&mut reading).await?;
    let endpoints = endpoints(&mut reading, &names, now).await?;
    let groups = groups(&mut reading, &names).await?;
    reading.end().await?;
    let may_operate = access.may_operate();
    let content = html! {
        @if endpoints.is_empty() {
            (empty(
                "Each endpoint will be here, with what came in over the last day, as soon as its \
                 first delivery has arrived."
            ))
        } @else {
            (endpoints_table(&endpoints, Timestamp(now), may_operate))
        }
        h2 { "What is failing" }
        @if groups.is_empty() {
            (empty("Nothing. Failed deliveries will be here, grouped by reason."))
        } @else {
            (groups_table(&groups, Timestamp(now), may_operate))
        }
    };
    Ok(layout.refreshed(15).page("Overview", content))
}

async fn endpoints(
    reading: &mut Reading,
    names: &[String],
    now: f64,
) -> sqlx::Result<Vec<Endpoint>> {
    let mut hours = hours(reading, names, now).await?;
    let mut last_success = BTreeMap::new();
    let rows = sqlx::query(LAST_SUCCESS).bind(names);
    for row in rows.fetch_all(&mut **reading).await? {
        let endpoint: String = row.try_get("endpoint")?;
        let at: f64 = row.try_get("last_at")?;
        last_success.insert(endpoint, at);
    }
    let rows = sqlx::query(ENDPOINTS).bind(names);
    let rows = rows.fetch_all(&mut **reading).await?;
    let read = |row: &sqlx::postgres::PgRow| {
        let name: String = row.try_get("endpoint")?;
        let (due, dead) = (Count(row.try_get("due")?), Count(row.try_get("dead")?));
        let absent: Option<f64> = row.try_get("absent")?;
        let overdue: Option<f64> = row.try_get("overdue")?;
        let state = if row.try_get("paused")? {
            State::Paused
        } else if !due.is_zero() && absent.is_none_or(|absent| absent > ABSENT_AFTER) {
            State::Unhandled
        } else if row.try_get("probing")? {
            State::Probing
        } else if !due.is_zero() || !dead.is_zero() {
            State::Failing
        } else {
            State::Fine
        };
        Ok(Endpoint {
            state,
            due,
            dead,
            recorded: Count(row.try_get("recorded")?),
            overdue: overdue.filter(|overdue| *overdue > 0.0),
            last_success: last_success.remove(&name),
            hours: hours.remove(&name).unwrap_or_default(),
            name,
        })
    };
    rows.iter().map(read).collect()
}

/// The last 24 hours of each endpoint, the current one included.
async fn hours(
    connection: &mut PgConnection,
    names: &[String],
    now: f64,
) -> sqlx::Result<BTreeMap<String, Vec<Hour>>> {
    #[expect(clippy::cast_possible_truncation, reason = "whole seconds")]
    let now = now as i64;
    let first = now - now.rem_euclid(HOUR) - (HOURS - 1) * HOUR;
    let empty: Vec<Hour> = (0..HOURS)
        .map(|hour| Hour {
            at: first + hour * HOUR,
            ..Hour::default()
        })
        .collect();
    let mut hours: BTreeMap<String, Vec<Hour>> = names
        .iter()
        .map(|name| (name.clone(), empty.clone()))
        .collect();
    let rows = sqlx::query(ACTIVITY).bind(names);
    for row in rows.fetch_all(connection).await? {
        let endpoint: String = row.try_get("endpoint")?;
        let index = (row.try_get::<i64, _>("hour")? - first) / HOUR;
        let hour = hours
            .get_mut(&endpoint)
            .and_then(|hours| hours.get_mut(usize::try_from(index).ok()?));
        let Some(hour) = hour else { continue };
        let (source, outcome): (&str, &str) = (row.try_get("source")?, row.try_get("outcome")?);
        let counted = match (source, outcome) {
            (_, "processed") => &mut hour.processed,
            (_, "failed" | "kept") => &mut hour.failed,
            ("request", "duplicate") => &mut hour.duplicates,
            ("request", "rejected") => &mut hour.rejected,
            _ => continue,
        };
        *counted += row.try_get::<i64, _>("count")?;
    }
    Ok(hours)
}

async fn groups(connection: &mut PgConnection, names: &[String]) -> sqlx::Result<Vec<Group>> {
    let rows = sqlx::query(GROUPS)
        .bind(names)
        .bind(MAX_GROUPS)
        .fetch_all(connection)
        .await?;
    let read = |row: &sqlx::postgres::PgRow| {
        Ok(Group {
            endpoint: row.try_get("endpoint")?,
            state: row.try_get("state")?,
            reason_group: row.try_get("reason_group")?,
            status: row.try_get("status")?,
            reason: row.try_get("reason")?,
            since: row.try_get("since")?,
            last_failed_at: row.try_get("last_failed_at")?,
            count: Count(row.try_get("count")?),
        })
    };
    let mut groups: Vec<Group> = rows.iter().map(read).collect::<sqlx::Result<_>>()?;
    // The largest first, which stays where it is while the page is looked at.
    groups.sort_by(|a, b| {
        let key = |group: &Group| (group.endpoint.clone(), group.state.clone());
        (b.count.0.cmp(&a.count.0)).then_with(|| key(a).cmp(&key(b)))
    });
    Ok(groups)
}

fn endpoints_table(endpoints: &[Endpoint], now: Timestamp, may_operate: bool) -> Markup {
    let list = |endpoint: &Endpoint, state: &'static str, number: Count| {
        html! {
            @if number.is_zero() { span.muted { "0" } }
            @else {
                a href=(Link::to("deliveries")
                    .with("endpoint", &endpoint.name)
                    .with("state", state)) { (count(number)) }
            }
        }
    };
    html! {
        div.scroll {
            table {
                thead {
                    tr {
                        th scope="col" { "Endpoint" }
                        th scope="col" { "State" }
                        th scope="col" { "Last 24 hours" }
                        th.number scope="col" { "Due" }
                        th.number scope="col" { "Dead" }
                        th.number scope="col" { "Recorded" }
                        th scope="col" { "Oldest due" }
                        th scope="col" { "Last success" }
                        @if may_operate { th scope="col" { span.hidden { "Actions" } } }
                    }
                }
                tbody {
                    @for endpoint in endpoints {
                        tr {
                            th scope="row" {
                                a href=(Link::to("deliveries").with("endpoint", &endpoint.name)) {
                                    (visible(&endpoint.name))
                                }
                            }
                            td title=(endpoint.state.meaning()) { (state(endpoint.state.name())) }
                            td { (plot(&endpoint.hours)) }
                            td.number { (list(endpoint, "due", endpoint.due)) }
                            td.number.dead { (list(endpoint, "dead", endpoint.dead)) }
                            td.number { (list(endpoint, "recorded", endpoint.recorded)) }
                            td {
                                @if let Some(overdue) = endpoint.overdue { (duration(overdue)) }
                            }
                            td {
                                @match endpoint.last_success {
                                    Some(at) => { (Timestamp(at).with_age(now)) }
                                    None => { span.muted { "none counted" } }
                                }
                            }
                            @if may_operate { td { (pause_or_resume(endpoint)) } }
                        }
                    }
                }
            }
        }
        p.legend {
            span data-key="processed" { "processed" }
            span data-key="duplicate" { "duplicates" }
            span data-key="rejected" { "rejected" }
            span data-key="failed" { "failed attempts" }
        }
    }
}

fn pause_or_resume(endpoint: &Endpoint) -> Markup {
    let (label, action) = match endpoint.state {
        State::Paused | State::Probing => ("Resume", "resume"),
        State::Fine | State::Failing | State::Unhandled => ("Pause", "pause"),
    };
    let fields = [
        ("action", Some(action)),
        ("endpoint", Some(&*endpoint.name)),
    ];
    let label = html! { (label) span.hidden { " " (visible(&endpoint.name)) } };
    button(&label, "act", &fields)
}

fn groups_table(groups: &[Group], now: Timestamp, may_operate: bool) -> Markup {
    html! {
        div.scroll {
            table.groups {
                thead {
                    tr {
                        th.number scope="col" { "Deliveries" }
                        th scope="col" { "Reason of the last attempt" }
                        th scope="col" { "Status" }
                        th scope="col" { "State" }
                        th scope="col" { "Endpoint" }
                        th scope="col" { "Since" }
                        th scope="col" { "Last" }
                        @if may_operate { th scope="col" { span.hidden { "Actions" } } }
                    }
                }
                tbody {
                    @for group in groups {
                        @let these = Link::to("deliveries")
                            .with("endpoint", &group.endpoint)
                            .with("state", &group.state)
                            .with("reason", &group.reason_group);
                        tr {
                            td.number { a href=(these) { (count(group.count)) } }
                            td.reason { (short(group.reason.as_deref().unwrap_or_default(), 160)) }
                            td { (status(group.status)) }
                            td { (state(&group.state)) }
                            td { (visible(&group.endpoint)) }
                            td {
                                @if let Some(since) = group.since {
                                    (Timestamp(since).with_age(now))
                                }
                            }
                            td { (Timestamp(group.last_failed_at).with_age(now)) }
                            @if may_operate {
                                td { @if group.state != "recorded" { (retry(group, now)) } }
                            }
                        }
                    }
                }
            }
        }
        @if groups.len() as i64 == MAX_GROUPS {
            p.muted { "Only the " (MAX_GROUPS) " reasons that occurred last are shown." }
        }
    }
}

fn retry(group: &Group, now: Timestamp) -> Markup {
    let link = Link::to("confirm")
        .with("action", "retry")
        .with("endpoint", &group.endpoint)
        .with("state", &group.state)
        .with("reason", &group.reason_group)
        .with("before", now.0);
    html! {
        a.button href=(link) {
            "Retry…"
            span.hidden { " " (group.count) " of " (visible(&group.endpoint)) }
        }
    }
}
