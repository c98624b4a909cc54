//! An endpoint's deliveries, counted by a name, such as the position of a secret in the list of
//! secrets.

use maud::{Markup, Render, html};
use serde::Serialize;
use sqlx::{PgConnection, Row};

use super::super::html::{Table, Timestamp, visible};
use super::super::rows::grouped;

/// The number of names per source is bounded.
const BY_NAME: &str = "
    select
        outcome as name, sum(count)::int8 as count,
        extract(epoch from max(last_at))::float8 as last_at
    from idempotent_webhook.activity
    where endpoint = $1 and hour >= to_timestamp($2) and source = $3
    group by outcome
    order by outcome
    limit 100
";

#[derive(Serialize)]
pub(super) struct Named {
    /// `*` for all deliveries that are not counted by name.
    name: String,
    deliveries: i64,
    last: Timestamp,
}

pub(super) async fn read(
    connection: &mut PgConnection,
    endpoint: &str,
    since: i64,
    source: &'static str,
) -> sqlx::Result<Vec<Named>> {
    let rows = sqlx::query(BY_NAME).bind(endpoint).bind(since).bind(source);
    let rows = rows.fetch_all(connection).await?;
    rows.iter()
        .map(|row| {
            Ok(Named {
                name: row.try_get("name")?,
                deliveries: row.try_get("count")?,
                last: Timestamp(row.try_get("last_at")?),
            })
        })
        .collect()
}

pub(super) fn table(what: &'static str, all: &[Named], now: Timestamp) -> Markup {
    Table::of(all)
        .row_head(what, |named| {
            html! {
                @if named.name == "*" { span.muted { "all others" } }
                @else { (visible(&named.name)) }
            }
        })
        .number("Deliveries", |named| html! { (grouped(named.deliveries)) })
        .column("Last", |named| named.last.with_age(now))
        .render()
}
