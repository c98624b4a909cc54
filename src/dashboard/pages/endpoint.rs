//! The page of an endpoint: its numbers by hour and by version, rejected requests, failing deliveries, how far it is
//! reconciled, and its settings.

use maud::{Markup, Render, html};
use serde::Serialize;

use super::super::activity::{self, Counts, HOUR, History, Hour, Measured};
use super::super::endpoints::{self, Endpoint};
use super::super::environments::Environments;
use super::super::error::PageError;
use super::super::html::{Table, Timestamp, duration, empty, facts, legend, plot, visible};
use super::super::params::{Link, Params};
use super::super::rows::{self, grouped};
use super::super::view::View;
use super::super::{Access, Shared};
use super::by_name::{self, Named};
use super::groups::{self, Groups};
use super::handled::{self, HandledType};
use super::ignored::{self, IgnoredType};
use super::overview;
use super::reconciliation::{self, List};
use super::rejected::{self, Cause};
use super::settings::{self, Told};

#[derive(Serialize)]
pub(in crate::dashboard) struct EndpointPage {
    now: Timestamp,
    environment: Environments,
    #[serde(flatten)]
    endpoint: Endpoint,
    totals: Total,
    by_hour: Vec<HourOf>,
    by_version: Vec<Version>,
    rejected: Vec<Cause>,
    handled: Vec<HandledType>,
    ignored: Vec<IgnoredType>,
    /// Deliveries whose payload did not have the expected version.
    other_versions: Vec<Named>,
    /// Deliveries by the position of the secret that verified them, if there are several secrets.
    by_secret: Vec<Named>,
    reconciliation: Vec<List>,
    #[serde(flatten)]
    failing: Groups,
    settings: Option<Told>,
}

/// Numbers, with the handler durations in milliseconds.
#[derive(Serialize)]
struct Total {
    #[serde(flatten)]
    counts: Counts,
    handler_p50_ms: Option<u64>,
    handler_p95_ms: Option<u64>,
    /// Whether any handler ran. If so, a missing duration means that the duration was longer than the largest bucket.
    has_handlers: bool,
}

#[derive(Serialize)]
struct HourOf {
    at: Timestamp,
    #[serde(flatten)]
    total: Total,
    /// The versions that started in this hour.
    began: Vec<String>,
}

#[derive(Serialize)]
struct Version {
    version: String,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    #[serde(flatten)]
    total: Total,
}

impl Total {
    fn of(measured: &Measured) -> Self {
        Self {
            counts: measured.counts,
            handler_p50_ms: measured.times.within(50),
            handler_p95_ms: measured.times.within(95),
            has_handlers: !measured.times.is_empty(),
        }
    }

    fn time(&self, milliseconds: Option<u64>) -> Markup {
        html! {
            @match milliseconds {
                None if self.has_handlers => { "> " (activity::LONGEST / 1000) " s" }
                None => {}
                Some(time) if time >= 1000 => { (time / 1000) " s" }
                Some(time) => { (time) " ms" }
            }
        }
    }
}

impl HourOf {
    fn name(&self) -> Markup {
        html! {
            (self.at)
            @for version in &self.began { " " span.muted { (visible(version)) " began" } }
        }
    }
}

impl Version {
    fn name(&self) -> Markup {
        html! {
            strong { (visible(&self.version)) }
            @if let (Some(first), Some(last)) = (self.first, self.last) {
                " " span.muted { "from " (first) " to " (last) }
            }
        }
    }
}

pub(in crate::dashboard) async fn read(
    shared: &Shared,
    access: &Access,
    params: &Params,
) -> Result<EndpointPage, PageError> {
    let name = params.get("endpoint").unwrap_or_default();
    let hours = match params.get("days") {
        None | Some("1") => 24,
        Some("7") => 7 * 24,
        Some(_) => return Err(PageError::bad_request("`days` is 1 or 7.")),
    };
    let mut reading = shared.database.read().await?;
    let known = rows::endpoints(&mut reading, access).await?;
    if !known.iter().any(|known| known == name) {
        reading.end();
        return Err(PageError::not_found("There is no such endpoint."));
    }
    let now = rows::now(&mut reading).await?;
    let environment = Environments::read(&mut reading).await?;
    let names = [name.to_owned()];
    let day = activity::beginnings(now, 24);
    let mut endpoints = endpoints::read(&mut reading, access, &names, &day).await?;
    let beginnings = activity::beginnings(now, hours);
    let first = beginnings.first().copied().unwrap_or_default();
    let history = History::read(&mut reading, name, first).await?;
    let rejected = rejected::causes(&mut reading, &names, first).await?;
    let handled = handled::types(&mut reading, name).await?;
    let ignored = ignored::types(&mut reading, name, first).await?;
    let other_versions = by_name::read(&mut reading, name, first, "version").await?;
    let by_secret = by_name::read(&mut reading, name, first, "secret").await?;
    let reconciliation = reconciliation::read(&mut reading, access, name).await?;
    let failing = groups::read(&mut reading, access, &names).await?;
    let settings = settings::told(&mut reading, name).await?;
    reading.end();

    let mut all = Measured::default();
    for measured in history.hours.values() {
        all += measured;
    }
    let by_hour = beginnings.iter().map(|at| {
        let nothing = Measured::default();
        HourOf {
            at: activity::timestamp(*at),
            total: Total::of(history.hours.get(at).unwrap_or(&nothing)),
            began: history.began(*at).into_iter().map(named).collect(),
        }
    });
    let versions = history.versions.iter().map(|(version, (measured, seen))| {
        let at = |at: i64| activity::timestamp(at);
        Version {
            version: named(version),
            first: seen.first().map(|first| at(*first)),
            // The end of the version's last hour, or now if that hour is not over.
            last: seen
                .last()
                .map(|last| Timestamp(now.min(at(last + HOUR).0))),
            total: Total::of(measured),
        }
    });
    let mut by_version: Vec<Version> = versions.collect();
    by_version.sort_by(|a, b| {
        let times = |version: &Version| (version.last, version.first);
        times(b)
            .partial_cmp(&times(a))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    Ok(EndpointPage {
        now: Timestamp(now),
        environment,
        endpoint: endpoints
            .pop()
            .ok_or(PageError::not_found("There is no such endpoint."))?,
        totals: Total::of(&all),
        by_hour: by_hour.collect(),
        by_version,
        rejected,
        handled,
        ignored,
        other_versions,
        by_secret,
        reconciliation,
        failing,
        settings,
    })
}

fn named(version: &str) -> String {
    match version {
        "" => "not named".to_owned(),
        version => version.to_owned(),
    }
}

impl View for EndpointPage {
    fn title(&self) -> String {
        visible(&self.endpoint.name).into_owned()
    }

    fn content(&self, viewer: &Access) -> Markup {
        let endpoint = &self.endpoint;
        let list = |state, count| html! { (overview::list(endpoint, state, count)) };
        let processed = Link::to("deliveries")
            .with("endpoint", &endpoint.name)
            .with("state", "processed");
        let switched_off = self.settings.as_ref().and_then(Told::switched_off);
        html! {
            (self.environment.banner(viewer))
            p.lead { (overview::states(endpoint)) " " (endpoint.state.meaning()) }
            div.actions {
                @if viewer.may_operate() { (overview::pause_or_resume(endpoint)) }
                a.button href=(processed) { "What came in" }
            }
            (facts(&[
                ("Due", Some(list("due", endpoint.due))),
                ("Dead", Some(list("dead", endpoint.dead))),
                ("Recorded", Some(list("recorded", endpoint.recorded))),
                ("Oldest due", endpoint.overdue.map(|overdue| html! { (duration(overdue)) })),
                ("Last success", endpoint.last_success.map(|at| at.with_age(self.now))),
                ("Switched off by the provider", switched_off.map(|when| html! { (visible(when)) })),
            ]))
            (self.hours())
            h2 { "By version of the application" }
            (self.versions())
            h2 { "What is failing" }
            @if self.failing.is_empty() {
                (overview::nothing_failing(std::slice::from_ref(endpoint), "Nothing has failed."))
            } @else {
                (groups::table(&self.failing, self.now, viewer.may_operate()))
            }
            h2 { "What is rejected" }
            @if self.rejected.is_empty() {
                (empty("Nothing in this time."))
            } @else {
                (rejected::table(&self.rejected, self.now))
            }
            @if !self.handled.is_empty() {
                h2 { "What has a handler" }
                (handled::table(&self.handled, self.now))
            }
            @if !self.ignored.is_empty() {
                h2 { "What is ignored" }
                (ignored::table(&self.ignored, self.now))
            }
            @if !self.other_versions.is_empty() {
                h2 { "Other versions" }
                p {
                    "Payloads that did not have the expected version of the provider's API. They were still handled."
                    @if self.settings.as_ref().is_some_and(Told::version_is_unsigned) {
                        " The signature does not cover the version: an attacker with a captured request can make one up."
                    }
                }
                (by_name::table("Version", &self.other_versions, self.now))
            }
            @if !self.by_secret.is_empty() {
                h2 { "By secret" }
                p {
                    "0 is the first secret, which is the newest. A rotation is complete once no other secret has \
                     verified a delivery for as long as the provider may still use that secret."
                }
                (by_name::table("Place", &self.by_secret, self.now))
            }
            @if !self.reconciliation.is_empty() {
                h2 { "Reconciliation" }
                (reconciliation::table(&self.reconciliation, self.now))
            }
            h2 { "Settings" }
            @match &self.settings {
                Some(told) => { (settings::facts_of(told, self.now)) }
                None => {
                    (empty("No process has reported them yet. Each process reports them with its first requests."))
                }
            }
        }
    }

    fn refresh(&self) -> Option<u32> {
        Some(15)
    }
}

impl EndpointPage {
    fn hours(&self) -> Markup {
        let hours: Vec<Hour> = self
            .by_hour
            .iter()
            .map(|hour| Hour {
                at: hour.at,
                counts: hour.total.counts,
            })
            .collect();
        let began: Vec<(Timestamp, Vec<&str>)> = self
            .by_hour
            .iter()
            .filter(|hour| !hour.began.is_empty())
            .map(|hour| (hour.at, hour.began.iter().map(|began| &**began).collect()))
            .collect();
        let mut by_hour: Vec<_> = self
            .by_hour
            .iter()
            .rev()
            .map(|hour| (hour.name(), &hour.total))
            .collect();
        by_hour.push((html! { strong { "In all" } }, &self.totals));
        let is_a_day = hours.len() <= 24;
        let other = Link::to("endpoint")
            .with("endpoint", &self.endpoint.name)
            .with("days", if is_a_day { 7 } else { 1 });
        html! {
            h2 { @if is_a_day { "Last 24 hours" } @else { "Last 7 days" } }
            (plot(&hours, &began))
            (legend())
            @let missed = self.totals.counts.missed;
            @if missed > 0 { p { "Received by reconciliation: " (grouped(missed)) } }
            p { a href=(other) { @if is_a_day { "7 days" } @else { "24 hours" } } }
            details data-key="hours" {
                summary { "By hour" }
                (table("Hour", &by_hour))
            }
        }
    }

    fn versions(&self) -> Markup {
        if self.by_version.is_empty() {
            return empty(
                "Nothing came in. If you give the layer the application's version, this table shows what each version \
                 did.",
            );
        }
        let rows = self.by_version.iter();
        let rows: Vec<_> = rows
            .map(|version| (version.name(), &version.total))
            .collect();
        table("Version", &rows)
    }
}

/// A row name, and the numbers of the row.
type Row<'a> = (Markup, &'a Total);

fn table(what: &'static str, rows: &[Row<'_>]) -> Markup {
    let number =
        |of: fn(&Counts) -> i64| move |(_, total): &Row<'_>| html! { (grouped(of(&total.counts))) };
    Table::of(rows)
        .row_head(what, |(name, _)| name.clone())
        .number("Processed", number(|counts| counts.processed))
        .number("Failed attempts", |(_, total)| {
            let failed = total.counts.failed;
            html! { span class=[(failed > 0).then_some("bad")] { (grouped(failed)) } }
        })
        .number("Duplicates", number(|counts| counts.duplicates))
        .number("Rejected", number(|counts| counts.rejected))
        .number("Half of the handlers within", |(_, total)| {
            total.time(total.handler_p50_ms)
        })
        .number("95 % within", |(_, total)| total.time(total.handler_p95_ms))
        .render()
}
