//! The first page: the endpoints, and what is failing.

use maud::{Markup, Render, html};
use serde::Serialize;

use super::super::activity;
use super::super::endpoints::{self, Endpoint};
use super::super::environments::Environments;
use super::super::error::PageError;
use super::super::html::{
    Table, Timestamp, button, count, duration, empty, legend, short, sparkline, state, visible,
};
use super::super::params::Link;
use super::super::rows::{self, Count};
use super::super::view::View;
use super::super::{Access, Shared};
use super::groups::{self, Groups};

const HOURS: i64 = 24;

#[derive(Serialize)]
pub(in crate::dashboard) struct Overview {
    now: Timestamp,
    environment: Environments,
    endpoints: Vec<Endpoint>,
    #[serde(flatten)]
    failing: Groups,
}

pub(in crate::dashboard) async fn read(
    shared: &Shared,
    access: &Access,
) -> Result<Overview, PageError> {
    let mut reading = shared.database.read().await?;
    let now = rows::now(&mut reading).await?;
    let environment = Environments::read(&mut reading).await?;
    let names = rows::endpoints(&mut reading, access).await?;
    let beginnings = activity::beginnings(now, HOURS);
    let endpoints = endpoints::read(&mut reading, access, &names, &beginnings).await?;
    let failing = groups::read(&mut reading, access, &names).await?;
    reading.end();
    Ok(Overview {
        now: Timestamp(now),
        environment,
        endpoints,
        failing,
    })
}

impl View for Overview {
    fn title(&self) -> String {
        "Overview".into()
    }

    fn content(&self, viewer: &Access) -> Markup {
        html! {
            (self.environment.banner(viewer))
            // On a phone, failures come first, because each endpoint takes up half of the screen.
            div.overview {
                section {
                    @if self.endpoints.is_empty() {
                        (empty(
                            "Each endpoint appears here, with the numbers of the last day, as soon as its first \
                             delivery has arrived."
                        ))
                    } @else {
                        (endpoints_table(&self.endpoints, self.now, viewer.may_operate()))
                        (legend())
                    }
                }
                section.first {
                    h2 { "What is failing" }
                    @if self.failing.is_empty() {
                        (nothing_failing(
                            &self.endpoints,
                            "Nothing has failed. Failed deliveries will be listed here, grouped by reason."
                        ))
                    } @else {
                        (groups::table(&self.failing, self.now, viewer.may_operate()))
                    }
                }
            }
        }
    }

    fn refresh(&self) -> Option<u32> {
        Some(15)
    }
}

fn endpoints_table(endpoints: &[Endpoint], now: Timestamp, may_operate: bool) -> Markup {
    let table = Table::of(endpoints)
        .row_head("Endpoint", |endpoint| {
            let page = Link::to("endpoint").with("endpoint", &endpoint.name);
            html! { a href=(page) { (visible(&endpoint.name)) } }
        })
        .column("State", |endpoint| {
            html! { span title=(endpoint.state.meaning()) { (states(endpoint)) } }
        })
        .column("Last 24 hours", |endpoint| sparkline(&endpoint.hours))
        .number("Due", |endpoint| list(endpoint, "due", endpoint.due))
        .styled("number dead", "Dead", |endpoint| {
            list(endpoint, "dead", endpoint.dead)
        })
        .number("Recorded", |endpoint| {
            list(endpoint, "recorded", endpoint.recorded)
        })
        .column("Oldest due", |endpoint| {
            html! { @if let Some(overdue) = endpoint.overdue { (duration(overdue)) } }
        })
        .column("Last success", |endpoint| match endpoint.last_success {
            Some(at) => at.with_age(now),
            None => html! { span.muted { "none counted" } },
        });
    let table = match may_operate {
        true => table.unnamed("Actions", |endpoint| {
            html! { div.actions { (pause_or_resume(endpoint)) } }
        }),
        false => table,
    };
    table.render()
}

/// The text if no delivery is failing. If deliveries may never have arrived, the text mentions this.
pub(super) fn nothing_failing(endpoints: &[Endpoint], otherwise: &str) -> Markup {
    match endpoints.iter().any(|endpoint| endpoint.is_unreconciled) {
        true => empty(
            "No received delivery is failing. Some may never have arrived, because a list is not reconciled.",
        ),
        false => empty(otherwise),
    }
}

/// The state, and the problems that the state does not show.
pub(super) fn states(endpoint: &Endpoint) -> Markup {
    html! {
        (state(endpoint.state.name()))
        @for other in endpoint.also() { " " (state(other.name())) }
        @if let Some((silence, every)) = endpoint.silence {
            " " span.why {
                "no authentic request for " (duration(silence)) ", and one is expected every "
                (duration(every))
            }
        }
        @if !endpoint.unreached.is_zero() {
            " " span.why {
                (count(endpoint.unreached)) " of the due deliveries reach no layer: see their pages"
            }
        }
        @if let Some(difference) = &endpoint.difference {
            " " span.why { (short(difference, 160)) }
        }
        @if let Some(why) = &endpoint.why_uncompared {
            " " span.why { (short(why, 160)) }
        }
        @if let Some(why) = &endpoint.why_unreconciled {
            " " span.why { (short(why, 160)) }
        }
    }
}

/// A number that links to the counted deliveries.
pub(super) fn list(endpoint: &Endpoint, state: &'static str, number: Count) -> Markup {
    let deliveries = Link::to("deliveries")
        .with("endpoint", &endpoint.name)
        .with("state", state);
    html! {
        @if number.is_zero() { span.muted { "0" } }
        @else { a href=(deliveries) { (count(number)) } }
    }
}

/// Buttons that pause an endpoint, or resume it if it is paused or held back by the breaker. After many failures in a
/// row, the open breaker makes recovery try one delivery at a time; meanwhile, both buttons are shown.
pub(super) fn pause_or_resume(endpoint: &Endpoint) -> Markup {
    let act = |label: &str, action: &str| {
        let fields = [
            ("action", Some(action)),
            ("endpoint", Some(&*endpoint.name)),
        ];
        let label = html! { (label) span.hidden { " " (visible(&endpoint.name)) } };
        button(&label, "act", &fields)
    };
    html! {
        @if !endpoint.is_paused { (act("Pause", "pause")) }
        @if endpoint.is_paused || endpoint.is_probing { (act("Resume", "resume")) }
    }
}
