//! An endpoint's ignored events, by type.

use maud::{Markup, html};
use serde::Serialize;
use sqlx::{PgConnection, Row};

use super::super::html::{Table, Timestamp, state, visible};
use super::super::rows::grouped;
use crate::recovery::Problem;

const TYPES: &str = "
    select
        counted.type, counted.count, extract(epoch from counted.last_at)::float8 as last_at,
        new.event_type is not null as is_new,
        told.settings -> 'ignored_event_types' ? counted.type as is_named,
        told.settings ->> 'event_types_verified' <> 'false' as is_verified
    from (
        select outcome as type, sum(count)::int8 as count, max(last_at) as last_at
        from idempotent_webhook.activity
        where endpoint = $1 and hour >= to_timestamp($2) and source = 'ignored'
        group by outcome
        order by sum(count) desc, outcome
        limit 100
    ) as counted
    left join idempotent_webhook.endpoint_settings as told on told.endpoint = $1
    left join idempotent_webhook.event_type_problems(array[$1]) as new
        on new.event_type = counted.type and new.problem = $3
    order by is_new desc, counted.count desc, counted.type
";

/// An event type without a handler.
#[derive(Serialize)]
pub(super) struct IgnoredType {
    /// `*` for all types that are not counted by name.
    #[serde(rename = "type")]
    name: String,
    events: i64,
    last: Timestamp,
    /// Whether the endpoint had never received this type before.
    #[serde(rename = "new")]
    is_new: bool,
    /// Whether the layer's table of event types lists the type as one to ignore.
    #[serde(rename = "named")]
    is_named: bool,
    /// Whether the name is verified, which means that an untrusted sender cannot have chosen it.
    #[serde(rename = "verified")]
    is_verified: bool,
}

pub(super) async fn types(
    connection: &mut PgConnection,
    endpoint: &str,
    since: i64,
) -> sqlx::Result<Vec<IgnoredType>> {
    let rows = sqlx::query(TYPES)
        .bind(endpoint)
        .bind(since)
        .bind(Problem::NewEventType.as_str());
    let rows = rows.fetch_all(connection).await?;
    rows.iter()
        .map(|row| {
            let is_named = row.try_get::<Option<_>, _>("is_named")?.unwrap_or(false);
            let is_verified: Option<bool> = row.try_get("is_verified")?;
            Ok(IgnoredType {
                is_new: row.try_get("is_new")?,
                is_named,
                is_verified: is_named || is_verified.unwrap_or(true),
                name: row.try_get("type")?,
                events: row.try_get("count")?,
                last: Timestamp(row.try_get("last_at")?),
            })
        })
        .collect()
}

pub(super) fn table(types: &[IgnoredType], now: Timestamp) -> Markup {
    html! {
        p {
            "Events of types without a handler. The provider does not need to send them: check its subscription."
            @if types.iter().any(|ignored| !ignored.is_verified) {
                " A sender may have made up a name that is not verified: either the signature does not cover the name, \
                 or any of the tenants, each of whom knows a secret, may have signed it."
            }
        }
        (Table::of(types)
            .row_head("Type", IgnoredType::in_words)
            .number("Events", |ignored| html! { (grouped(ignored.events)) })
            .column("Last", |ignored| ignored.last.with_age(now)))
    }
}

impl IgnoredType {
    fn in_words(&self) -> Markup {
        html! {
            @if self.name == "*" {
                span.muted { "further types, not counted by name" }
            } @else {
                (visible(&self.name))
                @if self.is_named { " " span.muted { "named" } }
                @if !self.is_verified { " " span.muted { "not verified" } }
            }
            @if self.is_new { " " (state("new")) }
        }
    }
}
