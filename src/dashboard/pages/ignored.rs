//! The events of an endpoint that were ignored, by type.

use maud::{Markup, html};
use serde::Serialize;
use sqlx::{PgConnection, Row};

use super::super::html::{Timestamp, visible};
use super::super::rows::grouped;

const TYPES: &str = "
    select
        outcome as type, sum(count)::int8 as count,
        extract(epoch from max(last_at))::float8 as last_at
    from idempotent_webhook.activity
    where endpoint = $1 and hour >= to_timestamp($2) and source = 'ignored'
    group by outcome
    order by sum(count) desc, outcome
    limit 100
";

/// A type that no handler is for.
#[derive(Serialize)]
pub(super) struct IgnoredType {
    /// `*` for those that are not told by name.
    #[serde(rename = "type")]
    name: String,
    events: i64,
    last: Timestamp,
}

pub(super) async fn types(
    connection: &mut PgConnection,
    endpoint: &str,
    since: i64,
) -> sqlx::Result<Vec<IgnoredType>> {
    let rows = sqlx::query(TYPES).bind(endpoint).bind(since);
    let rows = rows.fetch_all(connection).await?;
    rows.iter()
        .map(|row| {
            Ok(IgnoredType {
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
            "Events of types that no handler is for. The provider need not send them: compare its \
             subscription."
        }
        div.scroll {
            table.stacked.numbers {
                thead {
                    tr {
                        th scope="col" { "Type" }
                        th.number scope="col" { "Events" }
                        th scope="col" { "Last" }
                    }
                }
                tbody {
                    @for ignored in types {
                        tr {
                            th scope="row" {
                                @if ignored.name == "*" {
                                    span.muted { "not told by name: the signature does not cover it, there are many tenants, or too many types" }
                                } @else {
                                    (visible(&ignored.name))
                                }
                            }
                            td.number data-label="Events" { (grouped(ignored.events)) }
                            td data-label="Last" { (ignored.last.with_age(now)) }
                        }
                    }
                }
            }
        }
    }
}
