//! The event types for which the endpoint's layer has a handler, and when their events arrived.

use maud::{Markup, Render, html};
use serde::Serialize;
use sqlx::{PgConnection, Row};

use super::super::html::{Table, Timestamp, state, visible};
use super::super::rows::grouped;
use crate::recovery::Problem;

const TYPES: &str = "
    select
        named.name as type,
        extract(epoch from seen.first_at)::float8 as first_at,
        extract(epoch from seen.last_at)::float8 as last_at,
        seen.longest_pause,
        stopped.event_type is not null as has_stopped
    from idempotent_webhook.endpoint_settings as told
    cross join lateral jsonb_path_query(told.settings -> 'event_types', '$[*]') as element
    cross join lateral (select element #>> '{}' as name) as named
    left join idempotent_webhook.event_types as seen
        on seen.endpoint = told.endpoint and seen.event_type = named.name
    left join idempotent_webhook.event_type_problems(array[$1]) as stopped
        on stopped.event_type = named.name and stopped.problem = $2
    where told.endpoint = $1 and named.name is not null
    order by has_stopped desc, seen.last_at nulls first, named.name
    limit 100
";

/// An event type with a handler.
#[derive(Serialize)]
pub(super) struct HandledType {
    #[serde(rename = "type")]
    name: String,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    /// The longest pause between events of this type. It counts only minutes in which an event of any type with a
    /// handler arrived.
    longest_pause_minutes: Option<i32>,
    #[serde(rename = "stopped")]
    has_stopped: bool,
}

pub(super) async fn types(
    connection: &mut PgConnection,
    endpoint: &str,
) -> sqlx::Result<Vec<HandledType>> {
    let rows = sqlx::query(TYPES)
        .bind(endpoint)
        .bind(Problem::EventTypeStopped.as_str());
    let rows = rows.fetch_all(connection).await?;
    rows.iter()
        .map(|row| {
            let time = |column| -> sqlx::Result<_> {
                Ok(row.try_get::<Option<f64>, _>(column)?.map(Timestamp))
            };
            Ok(HandledType {
                name: row.try_get("type")?,
                first: time("first_at")?,
                last: time("last_at")?,
                longest_pause_minutes: row.try_get("longest_pause")?,
                has_stopped: row.try_get("has_stopped")?,
            })
        })
        .collect()
}

pub(super) fn table(types: &[HandledType], now: Timestamp) -> Markup {
    Table::of(types)
        .row_head("Type", |handled| {
            html! {
                (visible(&handled.name))
                @if handled.has_stopped { " " (state("stopped")) }
            }
        })
        .column("First", |handled| {
            html! {
                @match handled.first {
                    Some(at) => { (at) }
                    None => { span.muted { "none has arrived" } }
                }
            }
        })
        .column("Last", |handled| {
            html! { @if let Some(at) = handled.last { (at.with_age(now)) } }
        })
        .column("Longest pause", |handled| {
            html! {
                @if let Some(minutes) = handled.longest_pause_minutes {
                    (grouped(minutes.into())) " minutes in which events came"
                }
            }
        })
        .render()
}
