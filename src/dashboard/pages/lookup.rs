//! Look-up: the state of the deliveries with these ids.

use std::collections::BTreeMap;

use axum::response::Response;
use maud::{Markup, html};
use sqlx::{PgConnection, Row};

use super::super::error::PageError;
use super::super::html::{Layout, Timestamp, empty, short, state, visible};
use super::super::params::Params;
use super::super::rows::{self, Key};
use super::super::{Access, Shared};

/// How many ids are looked up at once.
const MAX_IDS: usize = 200;

const PROCESSED: &str = "
    select
        endpoint, tenant, delivery_id, event_type,
        extract(epoch from received_at)::float8 as at
    from idempotent_webhook.deliveries
    where delivery_id = any($1)
    order by delivery_id, endpoint, tenant
    limit 1000
";

/// By the index of the requests, which all have that can run again, or that of those without one.
const KEPT: &str = "
    select
        kept.endpoint, kept.tenant, kept.delivery_id, kept.event_type, kept.state,
        extract(epoch from coalesce(kept.last_failed_at, kept.first_received_at))::float8 as at
    from (
        select endpoint, tenant, delivery_id
        from idempotent_webhook.kept_requests
        where delivery_id = any($1)
        union
        select endpoint, tenant, delivery_id
        from idempotent_webhook.kept_deliveries
        where delivery_id = any($1) and state = 'recorded'
    ) as wanted
    join idempotent_webhook.kept_deliveries as kept using (endpoint, tenant, delivery_id)
    order by kept.delivery_id, kept.endpoint, kept.tenant
    limit 1000
";

/// Those whose first attempt is running, by the lock of their claim. Of endpoints whose ids are
/// separate by tenant, they are not found.
const IN_FLIGHT: &str = "
    select known.endpoint, wanted.id
    from unnest($1::text[]) as known (endpoint)
    cross join unnest($2::text[]) as wanted (id)
    where hashtextextended(wanted.id, hashtextextended('', hashtextextended(known.endpoint, 0))) in (
        select (classid::int8 << 32) | objid::int8
        from pg_locks
        where locktype = 'advisory' and objsubid = 1 and granted
            and database = (select oid from pg_database where datname = current_database())
    )
";

/// Before when deliveries may have been deleted.
const PRUNED: &str = "
    select extract(epoch from max(before))::float8
    from idempotent_webhook.pruned
";

struct Found {
    event_type: Option<String>,
    state: String,
    at: Option<f64>,
}

type All = BTreeMap<Key, Found>;

pub(in crate::dashboard) async fn lookup(
    shared: &Shared,
    access: &Access,
    layout: Layout,
    params: &Params,
) -> Result<Response, PageError> {
    let mut ids: Vec<String> = params
        .all("ids")
        .flat_map(str::lines)
        .map(|line| line.trim().to_owned())
        .filter(|id| !id.is_empty())
        .collect();
    ids.sort();
    ids.dedup();
    if ids.len() > MAX_IDS {
        return Err(PageError::bad_request(
            "At most 200 ids can be looked up at once.",
        ));
    }
    let content = if ids.is_empty() {
        form(&ids)
    } else {
        let mut reading = shared.database.read().await?;
        let now = Timestamp(rows::now(&mut reading).await?);
        let found = find(&mut reading, &ids).await?;
        let pruned: Option<f64> = sqlx::query_scalar(PRUNED).fetch_one(&mut *reading).await?;
        reading.end().await?;
        html! {
            (results(&ids, &found, pruned, now, access.may_operate()))
            (form(&ids))
        }
    };
    Ok(layout.page("Look up", content))
}

async fn find(connection: &mut PgConnection, ids: &[String]) -> sqlx::Result<All> {
    let mut found = All::new();
    let rows = sqlx::query(KEPT).bind(ids);
    for row in rows.fetch_all(&mut *connection).await? {
        let key = Key::read(&row)?;
        let of_row = Found {
            event_type: row.try_get("event_type")?,
            state: row.try_get("state")?,
            at: row.try_get("at")?,
        };
        found.insert(key, of_row);
    }
    // What was processed is done, whatever is kept.
    let rows = sqlx::query(PROCESSED).bind(ids);
    for row in rows.fetch_all(&mut *connection).await? {
        let of_row = Found {
            event_type: row.try_get("event_type")?,
            state: "processed".to_owned(),
            at: row.try_get("at")?,
        };
        found.insert(Key::read(&row)?, of_row);
    }
    let endpoints = rows::endpoints(connection).await?;
    let rows = sqlx::query(IN_FLIGHT).bind(endpoints).bind(ids);
    for row in rows.fetch_all(connection).await? {
        let key = Key {
            endpoint: row.try_get("endpoint")?,
            tenant: String::new(),
            id: row.try_get("id")?,
        };
        found.entry(key).or_insert(Found {
            event_type: None,
            state: "in flight".to_owned(),
            at: None,
        });
    }
    Ok(found)
}

fn form(ids: &[String]) -> Markup {
    html! {
        form.lookup action="lookup" {
            label for="ids" { "Delivery ids, one on each line" }
            textarea #ids name="ids" rows="4" spellcheck="false" { (ids.join("\n")) }
            p.muted {
                "An id is exactly as the provider gives it. Where an id is made of several values, \
                 the log has it."
            }
            button { "Look up" }
        }
    }
}

fn results(
    ids: &[String],
    found: &All,
    pruned: Option<f64>,
    now: Timestamp,
    may_operate: bool,
) -> Markup {
    let unknown: Vec<_> = ids
        .iter()
        .filter(|id| !found.keys().any(|key| key.id == **id))
        .collect();
    html! {
        @if !found.is_empty() {
            @let table = table(found, now, may_operate);
            @if may_operate {
                form.selection method="post" action="confirm" {
                    (table)
                    p.actions {
                        button name="action" value="retry" { "Retry the selected…" }
                        " "
                        button name="action" value="forget" { "Process the selected again…" }
                    }
                }
            } @else { (table) }
        }
        @if !unknown.is_empty() {
            h2 { "Not known" }
            ul.ids { @for id in &unknown { li { code { (visible(id)) } } } }
            p {
                @match pruned {
                    Some(before) => {
                        "Never received, or received before " (Timestamp(before))
                        " and deleted since."
                    }
                    None => { "Never received. No deliveries have been deleted here yet." }
                }
                " A delivery that failed is known if its layer keeps or records failures."
            }
        }
        @if found.is_empty() && unknown.is_empty() { (empty("No ids.")) }
    }
}

fn table(found: &All, now: Timestamp, may_operate: bool) -> Markup {
    html! {
        div.scroll {
            table {
                thead {
                    tr {
                        @if may_operate { th scope="col" { span.hidden { "Selected" } } }
                        th scope="col" { "Delivery" }
                        th scope="col" { "Endpoint" }
                        th scope="col" { "Event type" }
                        th scope="col" { "State" }
                        th scope="col" { "When" }
                    }
                }
                tbody {
                    @for (key, found) in found {
                        tr {
                            @if may_operate {
                                td {
                                    input type="checkbox" name="key" value=(key.link("").query())
                                        aria-label=(format!("Delivery {}", visible(&key.id)));
                                }
                            }
                            td.id { a href=(key.link("delivery")) { (short(&key.id, 80)) } }
                            td {
                                (visible(&key.endpoint))
                                @if let Some(tenant) = key.tenant() {
                                    " " span.muted { (short(tenant, 40)) }
                                }
                            }
                            td { (short(found.event_type.as_deref().unwrap_or_default(), 60)) }
                            td { (state(&found.state)) }
                            td { @if let Some(at) = found.at { (Timestamp(at).with_age(now)) } }
                        }
                    }
                }
            }
        }
    }
}
