//! The progress of an endpoint's reconciliation, for each of the provider's event lists. Reconciliation regularly reads
//! these lists, to find events that never arrived as requests. Each reading is a *round*.

use maud::{Markup, Render, html};
use serde::Serialize;
use sqlx::{PgConnection, Row};

use super::super::Access;
use super::super::endpoints::is_late;
use super::super::html::{Table, Timestamp, short, visible};
use super::super::rows::grouped;

/// Lists that are not reconciled come first.
const LISTS: &str = concat!(
    "
    select
        list.path, list.source, missed,
        left(failure, 300) as failure,
        extract(epoch from reconciled_until)::float8 as reconciled_until,
        extract(epoch from last_missed_at)::float8 as last_missed_at,
        extract(epoch from failed_at)::float8 as failed_at,
        case
            when ",
    is_late!(),
    " then extract(epoch from turn.next_at)::float8
        end as late_since
    from idempotent_webhook.reconciliations as list
    left join idempotent_webhook.turns as turn
        on turn.task = 'reconciliation'
            and turn.endpoint = list.endpoint
            and turn.address = list.path
            and turn.source = list.source
    where list.endpoint = $1
    order by failure is null and not coalesce(",
    is_late!(),
    ", false), list.source, list.path
    limit 1000
"
);

/// A list of the provider's events, and how far it is reconciled.
#[derive(Debug, Serialize)]
pub(super) struct List {
    source: String,
    /// The path of the route, only for readers who may see payloads: like any URI, it may contain a secret.
    path: Option<String>,
    reconciled_until: Option<Timestamp>,
    missed: i64,
    last_missed: Option<Timestamp>,
    /// The failure of the last round.
    failure: Option<String>,
    failing_since: Option<Timestamp>,
    /// The time at which a round was due, if that was more than an hour ago and no process has started it.
    late_since: Option<Timestamp>,
}

pub(super) async fn read(
    connection: &mut PgConnection,
    access: &Access,
    endpoint: &str,
) -> sqlx::Result<Vec<List>> {
    let rows = sqlx::query(LISTS).bind(endpoint);
    let mut lists = Vec::new();
    for row in rows.fetch_all(connection).await? {
        let time = |column| -> sqlx::Result<Option<Timestamp>> {
            Ok(row.try_get::<Option<f64>, _>(column)?.map(Timestamp))
        };
        let path: String = row.try_get("path")?;
        let failure: Option<String> = row.try_get("failure")?;
        lists.push(List {
            source: row.try_get("source")?,
            path: access.may_see_payloads().then_some(path),
            reconciled_until: time("reconciled_until")?,
            missed: row.try_get("missed")?,
            last_missed: time("last_missed_at")?,
            failure: failure.map(|failure| access.reason(failure)),
            failing_since: time("failed_at")?,
            late_since: time("late_since")?,
        });
    }
    Ok(lists)
}

pub(super) fn table(lists: &[List], now: Timestamp) -> Markup {
    Table::of(lists)
        .row_head("List", |list| {
            html! {
                (visible(&list.source))
                @if let Some(path) = &list.path { " " span.muted { (short(path, 80)) } }
            }
        })
        .column("Reconciled until", |list| match list.reconciled_until {
            Some(until) => until.with_age(now),
            None => html! { "not yet" },
        })
        .number("Missed", |list| html! { (grouped(list.missed)) })
        .column("Last missed", |list| {
            html! { @if let Some(last) = list.last_missed { (last.with_age(now)) } }
        })
        .styled("reason", "Failure", |list| failure(list, now))
        .render()
}

fn failure(list: &List, now: Timestamp) -> Markup {
    html! {
        @if let Some(failure) = &list.failure {
            (short(failure, 300))
            @if let Some(since) = list.failing_since {
                " " span.muted { "since " (since.with_age(now)) }
            }
        }
        @if let Some(late) = list.late_since {
            @if list.failure.is_some() { br; }
            "No process has started the round that was due at " (late.with_age(now)) "."
        }
    }
}
