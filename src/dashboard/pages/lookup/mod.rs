//! The look-up page: the state of the deliveries with given ids.

mod find;

use std::collections::BTreeSet;

use maud::{Markup, Render, html};
use serde::Serialize;
use sqlx::{PgConnection, Row};

use super::super::error::PageError;
use super::super::html::{Table, Timestamp, select, short, state, visible};
use super::super::params::Params;
use super::super::rows::{self, Key, grouped};
use super::super::view::View;
use super::super::{Access, Shared};
pub(super) use find::{All, Discarded};
use find::{ById, Found, MAX_OF_ID, PRUNED, REJECTED, find, find_discarded};

/// The largest number of ids that are looked up at once.
const MAX_IDS: usize = 200;

#[derive(Serialize)]
pub(in crate::dashboard) struct Lookup {
    now: Timestamp,
    found: Vec<Known>,
    /// The ids that have more deliveries than are shown.
    cut: BTreeSet<String>,
    /// Deliveries that a handler or an operator has discarded, or that the layer has forgotten on an operator's
    /// request. They have not arrived again since.
    discarded: Vec<Discarded>,
    unknown: Vec<String>,
    /// The time before which deliveries may have been deleted.
    deleted_before: Option<Timestamp>,
    /// Only for readers who see all tenants.
    rejected: Option<Rejected>,
    #[serde(skip)]
    text: String,
}

#[derive(Clone, Copy, Serialize)]
pub(super) struct Rejected {
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
    let known = match ids.is_empty() {
        true => KnownOf::default(),
        false => known_of(&mut reading, access, &ids).await?,
    };
    reading.end();
    let KnownOf {
        found,
        cut,
        discarded,
        deleted_before,
        rejected,
    } = known;
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

/// The records that were found for some ids.
#[derive(Default)]
pub(super) struct KnownOf {
    pub(super) found: All,
    /// The ids that have more deliveries than were read.
    pub(super) cut: BTreeSet<String>,
    /// Discarded or forgotten deliveries that have not arrived again.
    pub(super) discarded: Vec<Discarded>,
    /// The time before which deliveries may have been deleted.
    pub(super) deleted_before: Option<Timestamp>,
    /// Only for readers who see all tenants.
    pub(super) rejected: Option<Rejected>,
}

/// Looks up ids, which must be sorted by their bytes.
pub(super) async fn known_of(
    connection: &mut PgConnection,
    access: &Access,
    ids: &[String],
) -> sqlx::Result<KnownOf> {
    let endpoints = rows::endpoints(connection, access).await?;
    let mut by_id = ById {
        connection,
        access,
        ids,
        cut: BTreeSet::new(),
    };
    let found = find(&mut by_id, &endpoints).await?;
    let mut discarded = find_discarded(&mut by_id).await?;
    discarded.retain(|one| !found.contains_key(&one.key));
    let cut = by_id.cut;
    let pruned = sqlx::query_scalar::<_, Option<f64>>(PRUNED);
    let deleted_before = pruned.fetch_one(&mut *connection).await?.map(Timestamp);
    let mut rejected = None;
    if access.tenants().is_none() {
        let row = sqlx::query(REJECTED).bind(&endpoints);
        let row = row.fetch_one(&mut *connection).await?;
        rejected = Some(Rejected {
            last_24_hours: row.try_get("today")?,
            before: row.try_get("before")?,
        });
    }
    Ok(KnownOf {
        found,
        cut,
        discarded,
        deleted_before,
        rejected,
    })
}

/// The requested ids, line by line. A line contains several ids, or is one id with white space in it.
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

    /// The ids that are not known. If a whole line is a known id, its words are not treated as ids.
    fn without(&self, known: &BTreeSet<&str>) -> Vec<String> {
        let lines = self.0.iter().filter(|line| !known.contains(line.as_str()));
        let words = lines.flat_map(|line| line.split_whitespace());
        let unknown: BTreeSet<&str> = words.filter(|word| !known.contains(word)).collect();
        unknown.into_iter().map(str::to_owned).collect()
    }
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
                    "There are more deliveries with the id " code { (short(id, 80)) } ", from other endpoints or \
                     tenants. The first " (MAX_OF_ID) " are shown."
                }
            }
            @if !self.discarded.is_empty() {
                h2 { "Discarded or forgotten" }
                (table_of_discarded(&self.discarded, self.now))
                p.muted {
                    "A handler or an operator has discarded the delivery, or an operator has made the layer forget it. \
                     It is processed if its provider sends it again. Reconciliation does not run it."
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
    /// The actions that apply to at least one of the deliveries found.
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

    /// Why an id may be unknown. It cannot be known which delivery a rejected request belonged to.
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
                "A failed delivery is found if its layer keeps or records failures. Rejected requests are counted if \
                 the layer counts its activity. A delivery whose first attempt is running now is found, unless ids are \
                 separate for each tenant."
            }
        }
    }
}

fn form(text: &str) -> Markup {
    html! {
        // The ids are posted, because many ids would be too long for an address.
        form.lookup method="post" action="lookup" {
            label for="ids" { "Delivery ids, separated by spaces or new lines" }
            textarea #ids name="ids" rows="4" spellcheck="false" { (text) }
            p.muted {
                "Enter an id exactly as the provider gives it. If an id is made of several values, copy it from the \
                 log."
            }
            button { "Look up" }
        }
    }
}

fn table(found: &[Known], now: Timestamp, may_operate: bool) -> Markup {
    let mut table = Table::of(found);
    if may_operate {
        table = table.unnamed("Selected", |Known { key, .. }| select(key));
    }
    table
        .styled("id", "Delivery", |Known { key, .. }| {
            html! { a href=(key.link("delivery")) { (short(&key.id, 80)) } }
        })
        .column("Endpoint", |Known { key, found }| {
            endpoint(key, found.tenant_name.as_deref())
        })
        .column("Event type", |Known { found, .. }| {
            short(found.event_type.as_deref().unwrap_or_default(), 60)
        })
        .column("State", |Known { found, .. }| state(&found.state))
        .column("When", |Known { found, .. }| {
            html! { @if let Some(at) = found.at { (at.with_age(now)) } }
        })
        .render()
}

fn table_of_discarded(discarded: &[Discarded], now: Timestamp) -> Markup {
    Table::of(discarded)
        .styled("id", "Delivery", |Discarded { key, .. }| {
            html! { code { (short(&key.id, 80)) } }
        })
        .column("Endpoint", |Discarded { key, .. }| endpoint(key, None))
        .column("When", |Discarded { at, .. }| at.with_age(now))
        .render()
}

/// The endpoint and the tenant. If the tenant's name is not known, the tenant in the key is shown.
fn endpoint(key: &Key, tenant_name: Option<&str>) -> Markup {
    html! {
        (visible(&key.endpoint))
        @if let Some(tenant) = tenant_name.or(key.tenant()) {
            " " span.muted { (short(tenant, 40)) }
        }
    }
}
