//! Rejected requests, by cause and hour.

use maud::{Markup, Render, html};
use serde::Serialize;
use sqlx::{PgConnection, Row};

use super::super::activity;
use super::super::error::PageError;
use super::super::html::{Table, Timestamp, empty, short, visible};
use super::super::params::{Link, Params};
use super::super::rows::{self, grouped};
use super::super::view::View;
use super::super::{Access, Shared};

const HOURS: i64 = 24;

const CAUSES: &str = "
    select
        endpoint, cause, sum(count)::int8 as count,
        extract(epoch from min(hour))::float8 as since,
        extract(epoch from max(last_at))::float8 as last_at,
        (array_agg(reason order by last_at desc))[1] as reason,
        array_agg(extract(epoch from hour)::int8) as hours,
        array_agg(count) as counts
    from idempotent_webhook.rejections
    where endpoint = any($1) and hour >= to_timestamp($2)
    group by endpoint, cause
    order by sum(count) desc, endpoint, cause
    limit 5000
";

/// Why requests of an endpoint were rejected.
#[derive(Debug, Serialize)]
pub(super) struct Cause {
    endpoint: String,
    cause: String,
    requests: i64,
    /// The start of the hour of the first rejected request.
    since: Timestamp,
    last: Timestamp,
    /// The last reason, as in the log. It contains nothing from the request.
    reason: String,
    by_hour: Vec<InHour>,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct InHour {
    at: Timestamp,
    requests: i64,
}

#[derive(Serialize)]
pub(in crate::dashboard) struct Rejected {
    now: Timestamp,
    causes: Vec<Cause>,
    #[serde(skip)]
    beginnings: Vec<i64>,
    #[serde(skip)]
    endpoint: Option<String>,
}

pub(super) async fn causes(
    connection: &mut PgConnection,
    endpoints: &[String],
    since: i64,
) -> sqlx::Result<Vec<Cause>> {
    let rows = sqlx::query(CAUSES).bind(endpoints).bind(since);
    let rows = rows.fetch_all(connection).await?;
    let mut causes = Vec::new();
    for row in &rows {
        let hours: Vec<i64> = row.try_get("hours")?;
        let counts: Vec<i64> = row.try_get("counts")?;
        let by_hour = hours.iter().zip(counts).map(|(at, requests)| InHour {
            at: activity::timestamp(*at),
            requests,
        });
        causes.push(Cause {
            endpoint: row.try_get("endpoint")?,
            cause: row.try_get("cause")?,
            requests: row.try_get("count")?,
            since: Timestamp(row.try_get("since")?),
            last: Timestamp(row.try_get("last_at")?),
            reason: row.try_get("reason")?,
            by_hour: by_hour.collect(),
        });
    }
    Ok(causes)
}

pub(in crate::dashboard) async fn read(
    shared: &Shared,
    access: &Access,
    params: &Params,
) -> Result<Rejected, PageError> {
    let mut reading = shared.database.read().await?;
    let now = rows::now(&mut reading).await?;
    let mut names = rows::endpoints(&mut reading, access).await?;
    let endpoint = params.get("endpoint").map(str::to_owned);
    if let Some(endpoint) = &endpoint {
        names.retain(|name| name == endpoint);
    }
    let beginnings = activity::beginnings(now, HOURS);
    let first = beginnings.first().copied().unwrap_or_default();
    let causes = causes(&mut reading, &names, first).await?;
    reading.end();
    Ok(Rejected {
        now: Timestamp(now),
        causes,
        beginnings,
        endpoint,
    })
}

impl View for Rejected {
    fn title(&self) -> String {
        "Rejected".into()
    }

    fn content(&self, _: &Access) -> Markup {
        html! {
            p {
                "Requests of the last 24 hours that were refused before a handler ran, most of them before it was \
                 known who had sent them. If a secret was changed on only one side, the rejected requests appear here."
            }
            @if let Some(endpoint) = &self.endpoint {
                p { "Of " (visible(endpoint)) ". " a href="rejected" { "All endpoints" } }
            }
            @if self.causes.is_empty() {
                (empty("None."))
            } @else {
                (table(&self.causes, self.now))
                h2 { "By hour" }
                (self.by_hour())
            }
        }
    }

    fn refresh(&self) -> Option<u32> {
        Some(15)
    }
}

impl Rejected {
    /// A table with a row for each hour in which something was rejected.
    fn by_hour(&self) -> Markup {
        let in_hour = |at: i64| {
            let at = activity::timestamp(at);
            self.causes.iter().flat_map(move |cause| {
                let of_hour = cause.by_hour.iter().find(|hour| hour.at == at);
                of_hour.map(|hour| (cause, hour.requests))
            })
        };
        let in_all = |at: i64| in_hour(at).map(|(_, requests)| requests).sum::<i64>();
        let hours = self.beginnings.iter().rev();
        Table::of(hours.filter(|at| in_all(**at) > 0))
            .row_head("Hour", |at| html! { (activity::timestamp(*at)) })
            .number("Requests", |at| html! { (grouped(in_all(*at))) })
            .column("Causes", |at| {
                html! {
                    ul.parts {
                        @for (cause, requests) in in_hour(*at) {
                            li {
                                (grouped(requests)) " " (in_words(&cause.cause))
                                " " span.muted { (visible(&cause.endpoint)) }
                            }
                        }
                    }
                }
            })
            .render()
    }
}

pub(super) fn table(causes: &[Cause], now: Timestamp) -> Markup {
    Table::of(causes)
        .class("rejected")
        .number("Requests", |cause| html! { (grouped(cause.requests)) })
        .column("Cause", |cause| html! { (in_words(&cause.cause)) })
        .styled("reason", "Last reason", |cause| short(&cause.reason, 200))
        .column("Endpoint", |cause| {
            let page = Link::to("endpoint").with("endpoint", &cause.endpoint);
            html! { a href=(page) { (visible(&cause.endpoint)) } }
        })
        .column("Since", |cause| cause.since.with_age(now))
        .column("Last", |cause| cause.last.with_age(now))
        .render()
}

/// A cause in words. The names are the same as in the metric.
fn in_words(cause: &str) -> String {
    cause.replace('_', " ")
}
