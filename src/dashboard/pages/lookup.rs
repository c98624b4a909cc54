//! Look-up: the state of the deliveries with these ids.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use serde::Serialize;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use super::super::claim_lock::{claim_lock, held_locks};
use super::super::error::PageError;
use super::super::html::{Timestamp, select, short, state, visible};
use super::super::params::Params;
use super::super::rows::{self, Key, grouped};
use super::super::view::View;
use super::super::{Access, Shared};

/// How many ids are looked up at once.
const MAX_IDS: usize = 200;

/// How many deliveries of an id are shown, of those that were processed, that are kept and that were discarded.
const MAX_OF_ID: usize = 100;

/// How many rows are read at once: more than of one id.
const MAX_ROWS: usize = 10 * MAX_OF_ID;

/// The ids `$1` of the endpoints `$2` and the tenants `$3`, at most `$4`, as the two statements below. Where the
/// tenant is not part of the key, only what is kept tells it.
const PROCESSED: &str = "
    select
        endpoint, tenant, delivery_id, event_type,
        extract(epoch from received_at)::float8 as at
    from idempotent_webhook.deliveries
    where delivery_id = any($1)
        and ($2::text[] is null or endpoint = any($2))
        and ($3::text[] is null or tenant = '' or tenant = any($3))
    order by delivery_id, endpoint, tenant
    limit $4
";

/// By the index of the requests, which all have that can run again, or that of those without one.
const KEPT: &str = "
    select
        kept.endpoint, kept.tenant, kept.delivery_id, kept.tenant_name, kept.event_type, kept.state,
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
    where ($2::text[] is null or kept.endpoint = any($2))
        and ($3::text[] is null or coalesce(kept.tenant_name, kept.tenant) = any($3))
    order by kept.delivery_id, kept.endpoint, kept.tenant
    limit $4
";

/// Those whose first attempt is running, by the lock of their claim. Of endpoints whose ids are
/// separate by tenant, they are not found.
const IN_FLIGHT: &str = concat!(
    "
    select known.endpoint, wanted.id
    from unnest($1::text[]) as known (endpoint)
    cross join unnest($2::text[]) as wanted (id)
    where ",
    claim_lock!("known.endpoint", "''", "wanted.id"),
    " in (",
    held_locks!(),
    ")
"
);

/// Before when deliveries may have been deleted.
const PRUNED: &str = "
    select extract(epoch from max(before))::float8
    from idempotent_webhook.pruned
";

/// Requests that were rejected, so that nobody knows which deliveries they were: how many in the last 24
/// hours, and whether there were any before.
const REJECTED: &str = "
    select
        coalesce(sum(count) filter (where cause <> 'method_not_allowed'), 0)::int8 as today,
        exists (
            select from idempotent_webhook.rejections
            where endpoint = any($1) and hour <= now() - interval '24 hours'
        ) as before
    from idempotent_webhook.rejections
    where endpoint = any($1) and hour > now() - interval '24 hours'
";

/// Those that were discarded or forgotten. Retention deletes them as late as deliveries. Where the tenant is not
/// part of the key, it is not known.
const DISCARDED: &str = "
    select
        endpoint, tenant, delivery_id,
        extract(epoch from discarded_at)::float8 as at
    from idempotent_webhook.discarded
    where delivery_id = any($1)
        and ($2::text[] is null or endpoint = any($2))
        and ($3::text[] is null or tenant = any($3))
    order by delivery_id, endpoint, tenant
    limit $4
";

#[derive(Serialize)]
struct Found {
    event_type: Option<String>,
    tenant_name: Option<String>,
    state: String,
    at: Option<Timestamp>,
    /// Whether it was processed and can be processed again from its request.
    has_request: bool,
}

type All = BTreeMap<Key, Found>;

#[derive(Serialize)]
pub(in crate::dashboard) struct Lookup {
    now: Timestamp,
    found: Vec<Known>,
    /// The ids with more deliveries than are shown.
    cut: BTreeSet<String>,
    /// Those that a handler or an operator has discarded, or an operator has forgotten, and that did not come
    /// again.
    discarded: Vec<Discarded>,
    unknown: Vec<String>,
    /// Before when deliveries may have been deleted.
    deleted_before: Option<Timestamp>,
    /// For those who see all tenants.
    rejected: Option<Rejected>,
    #[serde(skip)]
    text: String,
}

#[derive(Clone, Copy, Serialize)]
struct Rejected {
    last_24_hours: i64,
    before: bool,
}

#[derive(Serialize)]
struct Known {
    #[serde(flatten)]
    key: Key,
    #[serde(flatten)]
    found: Found,
}

#[derive(Serialize)]
struct Discarded {
    #[serde(flatten)]
    key: Key,
    at: Timestamp,
}

pub(in crate::dashboard) async fn read(
    shared: &Shared,
    access: &Access,
    params: &Params,
) -> Result<Lookup, PageError> {
    let asked: Vec<&str> = params
        .all("ids")
        .flat_map(str::lines)
        .map(str::trim)
        .collect();
    let asked = Asked::of(&asked);
    let ids = asked.candidates();
    if asked.words().count() > MAX_IDS {
        return Err(PageError::bad_request(
            "At most 200 ids can be looked up at once.",
        ));
    }
    let mut reading = shared.database.read().await?;
    let now = Timestamp(rows::now(&mut reading).await?);
    let (mut found, mut cut, mut deleted_before) = (All::new(), BTreeSet::new(), None);
    let (mut discarded, mut rejected) = (Vec::new(), None);
    if !ids.is_empty() {
        let endpoints = rows::endpoints(&mut reading, access).await?;
        let mut by_id = ById {
            connection: &mut reading,
            access,
            ids: &ids,
            cut: BTreeSet::new(),
        };
        found = find(&mut by_id, &endpoints).await?;
        discarded = find_discarded(&mut by_id).await?;
        cut = by_id.cut;
        let pruned = sqlx::query_scalar::<_, Option<f64>>(PRUNED);
        deleted_before = pruned.fetch_one(&mut *reading).await?.map(Timestamp);
        discarded.retain(|one| !found.contains_key(&one.key));
        if access.tenants().is_none() {
            let row = sqlx::query(REJECTED).bind(&endpoints);
            let row = row.fetch_one(&mut *reading).await?;
            rejected = Some(Rejected {
                last_24_hours: row.try_get("today")?,
                before: row.try_get("before")?,
            });
        }
    }
    reading.end();
    let keys = found.keys().chain(discarded.iter().map(|one| &one.key));
    let known: BTreeSet<&str> = keys
        .map(|key| &*key.id)
        .chain(cut.iter().map(|id| &**id))
        .collect();
    let unknown = asked.without(&known);
    let found = found.into_iter().map(|(key, found)| Known { key, found });
    Ok(Lookup {
        now,
        found: found.collect(),
        cut,
        discarded,
        unknown,
        deleted_before,
        rejected,
        text: asked.0.join("\n"),
    })
}

/// What was asked for, line by line. A line has several ids, or is an id with white space in it.
struct Asked(Vec<String>);

impl Asked {
    fn of(lines: &[&str]) -> Self {
        let mut lines: Vec<String> = lines
            .iter()
            .filter(|line| !line.is_empty())
            .map(|line| (*line).to_owned())
            .collect();
        lines.sort();
        lines.dedup();
        Self(lines)
    }

    fn words(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(|line| line.split_whitespace())
    }

    fn candidates(&self) -> Vec<String> {
        let lines = self.0.iter().map(String::as_str);
        let all: BTreeSet<&str> = self.words().chain(lines).collect();
        all.into_iter().map(str::to_owned).collect()
    }

    /// The ids that are not known: of a line that is an id, no word is one.
    fn without(&self, known: &BTreeSet<&str>) -> Vec<String> {
        let lines = self.0.iter().filter(|line| !known.contains(line.as_str()));
        let words = lines.flat_map(|line| line.split_whitespace());
        let unknown: BTreeSet<&str> = words.filter(|word| !known.contains(word)).collect();
        unknown.into_iter().map(str::to_owned).collect()
    }
}

/// Reads the rows of ids, each with a limit of its own: however many deliveries have one id, those of the others
/// are found.
struct ById<'a> {
    connection: &'a mut PgConnection,
    access: &'a Access,
    /// In the order of Postgres, that of their bytes.
    ids: &'a [String],
    /// The ids with more rows than were read.
    cut: BTreeSet<String>,
}

impl ById<'_> {
    async fn read(&mut self, statement: &'static str) -> sqlx::Result<Vec<PgRow>> {
        let mut all: BTreeMap<String, Vec<PgRow>> = BTreeMap::new();
        let mut ids = self.ids;
        loop {
            let rows = sqlx::query(statement)
                .bind(ids)
                .bind(self.access.endpoints())
                .bind(self.access.tenants())
                .bind(MAX_ROWS as i64)
                .fetch_all(&mut *self.connection)
                .await?;
            let is_full = rows.len() == MAX_ROWS;
            let mut last = String::new();
            for row in rows {
                last = row.try_get("delivery_id")?;
                all.entry(last.clone()).or_default().push(row);
            }
            if !is_full {
                break;
            }
            // The rest of the last id is left out, or all of it is read again with those after it.
            let is_done = all.get(&last).is_some_and(|rows| rows.len() > MAX_OF_ID);
            if !is_done {
                all.remove(&last);
            }
            let next = ids.partition_point(|id| *id < last || is_done && *id == last);
            ids = ids.get(next..).unwrap_or_default();
        }
        let mut read = Vec::new();
        for (id, mut rows) in all {
            if rows.len() > MAX_OF_ID {
                rows.truncate(MAX_OF_ID);
                self.cut.insert(id);
            }
            read.append(&mut rows);
        }
        Ok(read)
    }
}

async fn find(by_id: &mut ById<'_>, endpoints: &[String]) -> sqlx::Result<All> {
    let mut found = All::new();
    for row in by_id.read(KEPT).await? {
        let state: String = row.try_get("state")?;
        let of_row = Found {
            event_type: row.try_get("event_type")?,
            tenant_name: row.try_get("tenant_name")?,
            has_request: state == "processed",
            state,
            at: row.try_get::<Option<f64>, _>("at")?.map(Timestamp),
        };
        found.insert(Key::read(&row)?, of_row);
    }
    // What was processed is done, whatever is kept.
    for row in by_id.read(PROCESSED).await? {
        let key = Key::read(&row)?;
        let kept = found.remove(&key);
        let of_row = Found {
            event_type: row.try_get("event_type")?,
            has_request: kept.as_ref().is_some_and(|kept| kept.has_request),
            tenant_name: kept.and_then(|kept| kept.tenant_name),
            state: "processed".to_owned(),
            at: row.try_get::<Option<f64>, _>("at")?.map(Timestamp),
        };
        found.insert(key, of_row);
    }
    let rows = sqlx::query(IN_FLIGHT).bind(endpoints).bind(by_id.ids);
    for row in rows.fetch_all(&mut *by_id.connection).await? {
        let key = Key {
            endpoint: row.try_get("endpoint")?,
            tenant: String::new(),
            id: row.try_get("id")?,
        };
        found.entry(key).or_insert(Found {
            event_type: None,
            tenant_name: None,
            state: "in flight".to_owned(),
            at: None,
            has_request: false,
        });
    }
    let access = by_id.access;
    found.retain(|key, found| {
        let tenant = found.tenant_name.as_ref().unwrap_or(&key.tenant);
        access.sees_endpoint(&key.endpoint) && access.sees_tenant(tenant)
    });
    Ok(found)
}

async fn find_discarded(by_id: &mut ById<'_>) -> sqlx::Result<Vec<Discarded>> {
    let read = |row: &PgRow| {
        Ok(Discarded {
            key: Key::read(row)?,
            at: Timestamp(row.try_get("at")?),
        })
    };
    by_id.read(DISCARDED).await?.iter().map(read).collect()
}

impl View for Lookup {
    fn title(&self) -> String {
        "Look up".into()
    }

    fn content(&self, viewer: &Access) -> Markup {
        html! {
            @if !self.found.is_empty() {
                @let table = table(&self.found, self.now, viewer.may_operate());
                @if viewer.may_operate() {
                    form.selection method="post" action="confirm" {
                        (table)
                        (self.actions())
                    }
                } @else { (table) }
            }
            @for id in &self.cut {
                p.muted {
                    "There are more deliveries of " code { (short(id, 80)) } ", of further endpoints or tenants. \
                     The first " (MAX_OF_ID) " are shown."
                }
            }
            @if !self.discarded.is_empty() {
                h2 { "Discarded or forgotten" }
                (table_of_discarded(&self.discarded, self.now))
                p.muted {
                    "Discarded by its handler or by an operator, or forgotten by an operator. Such a \
                     delivery is processed if its provider sends it again. Reconciliation leaves it alone."
                }
            }
            @if !self.unknown.is_empty() {
                h2 { "Not known" }
                ul.ids { @for id in &self.unknown { li { code { (visible(id)) } } } }
                (self.why_unknown())
            }
            (form(&self.text))
        }
    }
}

impl Lookup {
    /// What can be done to some of them.
    fn actions(&self) -> Markup {
        let has = |is: fn(&Found) -> bool| self.found.iter().any(|known| is(&known.found));
        html! {
            p.actions {
                @if has(|found| found.state != "processed") {
                    button name="action" value="retry" { "Retry the selected…" }
                }
                @if has(|found| found.has_request) {
                    button name="action" value="reprocess" {
                        "Process the selected again…"
                    }
                }
                @if has(|found| found.state == "processed" && !found.has_request) {
                    button name="action" value="forget" {
                        "Process again once delivered…"
                    }
                }
            }
        }
    }

    /// Nobody can know of a request that was rejected which delivery it was.
    fn why_unknown(&self) -> Markup {
        html! {
            p {
                "Never received"
                @match self.rejected {
                    None => { ", or of another tenant, or rejected, or discarded" }
                    Some(Rejected { last_24_hours: 0, before: false }) => {}
                    Some(Rejected { last_24_hours: 0, before: true }) => {
                        ", or rejected more than 24 hours ago"
                    }
                    Some(Rejected { last_24_hours, .. }) => {
                        ", or rejected: "
                        a href="rejected" { (grouped(last_24_hours)) " in the last 24 hours" }
                    }
                }
                @match self.deleted_before {
                    Some(before) => { ", or received before " (before) " and deleted since." }
                    None => { ". No deliveries have been deleted here yet." }
                }
            }
            p.muted {
                "A delivery that failed is known if its layer keeps or records failures. Rejected requests \
                 are known if it counts its activity. One whose first attempt is running now is known if \
                 its id is not separate by tenant."
            }
        }
    }
}

fn form(text: &str) -> Markup {
    html! {
        // Many ids are too long for an address.
        form.lookup method="post" action="lookup" {
            label for="ids" { "Delivery ids, apart by spaces or lines" }
            textarea #ids name="ids" rows="4" spellcheck="false" { (text) }
            p.muted {
                "An id is exactly as the provider gives it. Where an id is made of several values, \
                 the log has it."
            }
            button { "Look up" }
        }
    }
}

fn table(found: &[Known], now: Timestamp, may_operate: bool) -> Markup {
    html! {
        div.scroll {
            table.stacked {
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
                    @for Known { key, found } in found {
                        tr {
                            @if may_operate {
                                td { (select(key)) }
                            }
                            td.id data-label="Delivery" { a href=(key.link("delivery")) { (short(&key.id, 80)) } }
                            td data-label="Endpoint" {
                                (visible(&key.endpoint))
                                @if let Some(tenant) = found.tenant_name.as_deref().or(key.tenant()) {
                                    " " span.muted { (short(tenant, 40)) }
                                }
                            }
                            td data-label="Event type" {
                                (short(found.event_type.as_deref().unwrap_or_default(), 60))
                            }
                            td data-label="State" { (state(&found.state)) }
                            td data-label="When" {
                                @if let Some(at) = found.at { (at.with_age(now)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn table_of_discarded(discarded: &[Discarded], now: Timestamp) -> Markup {
    html! {
        div.scroll {
            table.stacked {
                thead {
                    tr {
                        th scope="col" { "Delivery" }
                        th scope="col" { "Endpoint" }
                        th scope="col" { "When" }
                    }
                }
                tbody {
                    @for Discarded { key, at } in discarded {
                        tr {
                            td.id data-label="Delivery" { code { (short(&key.id, 80)) } }
                            td data-label="Endpoint" {
                                (visible(&key.endpoint))
                                @if let Some(tenant) = key.tenant() {
                                    " " span.muted { (short(tenant, 40)) }
                                }
                            }
                            td data-label="When" { (at.with_age(now)) }
                        }
                    }
                }
            }
        }
    }
}
