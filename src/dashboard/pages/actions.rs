//! What operators did.

use axum::response::Response;
use maud::{Markup, html};

use super::super::error::PageError;
use super::super::html::{Layout, Timestamp, button, empty, facts, pages, short, state, visible};
use super::super::operate::audit::{self, Recorded};
use super::super::params::{Link, Params};
use super::super::rows::{self, grouped};
use super::super::{Access, Shared};

const PAGE: i64 = 50;

pub(in crate::dashboard) async fn actions(
    shared: &Shared,
    layout: Layout,
    params: &Params,
) -> Result<Response, PageError> {
    let mut reading = shared.database.read().await?;
    let now = Timestamp(rows::now(&mut reading).await?);
    let mut actions = audit::list(&mut reading, params.number("after"), PAGE + 1).await?;
    reading.end().await?;
    let has_more = actions.len() as i64 > PAGE;
    actions.truncate(PAGE.unsigned_abs() as usize);
    let first = Link::to("actions");
    let next = actions
        .last()
        .filter(|_| has_more)
        .map(|last| first.clone().with("after", last.id));
    let content = html! {
        @if actions.is_empty() {
            (empty("What operators do on these pages will be here: what, on what, who, and when."))
        } @else {
            (table(&actions, now))
        }
        (pages(params, first, next))
    };
    Ok(layout.page("Actions", content))
}

/// An action, and how far it is.
pub(in crate::dashboard) async fn action(
    shared: &Shared,
    access: &Access,
    layout: Layout,
    params: &Params,
) -> Result<Response, PageError> {
    let mut reading = shared.database.read().await?;
    let now = Timestamp(rows::now(&mut reading).await?);
    let recorded = match params.number("id") {
        Some(id) => audit::one(&mut reading, id).await?,
        None => None,
    };
    reading.end().await?;
    let recorded = recorded.ok_or(PageError::not_found("There is no such action."))?;
    let is_running = recorded.is_running();
    let id = recorded.id.to_string();
    let content = html! {
        (facts(&[
            ("Action", Some(html! { (recorded.action) })),
            ("State", Some(state(recorded.state()))),
            ("Deliveries changed", Some(html! { span.changed { (grouped(recorded.changed)) } })),
            ("On", Some(on(&recorded))),
            ("By", Some(by(recorded.operator.as_deref()))),
            ("Began", Some(Timestamp(recorded.began_at).with_age(now))),
            ("Ended", recorded.ended_at.map(|at| Timestamp(at).with_age(now))),
            (
                "Cancelled by",
                recorded.cancelled_by.as_deref().map(|name| by(Some(name))),
            ),
            ("Note", recorded.note.as_deref().map(|note| html! { (visible(note)) })),
        ]))
        @if is_running {
            p.actions {
                @if access.may_operate() {
                    (button(&html! { "Cancel" }, "cancel", &[("id", Some(&*id))]))
                    " "
                }
                a.button href=(Link::to("action").with("id", &id)) { "Refresh" }
            }
        } @else if recorded.state() == "interrupted" {
            p {
                "Its process has ended before it. What it changed is counted above; begin it again \
                 for the rest."
            }
        }
    };
    let layout = if is_running {
        layout.refreshed(2)
    } else {
        layout
    };
    Ok(layout.page("Action", content))
}

pub(super) fn table(actions: &[Recorded], now: Timestamp) -> Markup {
    html! {
        div.scroll {
            table {
                thead {
                    tr {
                        th scope="col" { "When" }
                        th scope="col" { "Who" }
                        th scope="col" { "What" }
                        th scope="col" { "On" }
                        th.number scope="col" { "Deliveries" }
                        th scope="col" { "State" }
                        th scope="col" { "Note" }
                    }
                }
                tbody {
                    @for action in actions {
                        tr {
                            td { (Timestamp(action.began_at).with_age(now)) }
                            td { (by(action.operator.as_deref())) }
                            td {
                                a href=(Link::to("action").with("id", action.id)) { (action.action) }
                            }
                            td { (on(action)) }
                            td.number { (grouped(action.changed)) }
                            td { (state(action.state())) }
                            td { (short(action.note.as_deref().unwrap_or_default(), 120)) }
                        }
                    }
                }
            }
        }
    }
}

fn on(action: &Recorded) -> Markup {
    html! {
        @if let Some(key) = action.key() {
            a href=(key.link("delivery")) { (short(&key.id, 60)) }
            " of "
        }
        (visible(&action.endpoint))
        @if let Some(selection) = &action.selection { ": " (visible(selection)) }
    }
}

fn by(operator: Option<&str>) -> Markup {
    html! {
        @match operator {
            Some(operator) => { (short(operator, 60)) }
            None => { span.muted { "not named" } }
        }
    }
}
