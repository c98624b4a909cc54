//! The record of actions: what operators did, and who.

use maud::{Markup, html};
use serde::Serialize;

use super::super::cursor::PAGE;
use super::super::error::PageError;
use super::super::html::{Timestamp, empty, pages, short, state, visible};
use super::super::operate::recorded_actions::{self, Recorded};
use super::super::params::{Link, Params};
use super::super::rows::{self, grouped};
use super::super::view::View;
use super::super::{Access, Shared};

#[derive(Serialize)]
pub(in crate::dashboard) struct Actions {
    now: Timestamp,
    actions: Vec<Recorded>,
    next: Option<Link>,
    #[serde(skip)]
    is_first: bool,
}

pub(in crate::dashboard) async fn read(
    shared: &Shared,
    access: &Access,
    params: &Params,
) -> Result<Actions, PageError> {
    rows::not_by_tenant(access)?;
    let mut reading = shared.database.read().await?;
    let now = Timestamp(rows::now(&mut reading).await?);
    let after = params.number("after");
    let mut actions = recorded_actions::list(&mut reading, access, after, PAGE as i64 + 1).await?;
    reading.end();
    let has_more = actions.len() > PAGE;
    actions.truncate(PAGE);
    let next = actions.last().filter(|_| has_more);
    Ok(Actions {
        now,
        next: next.map(|last| Link::to("actions").with("after", last.id)),
        actions,
        is_first: after.is_none(),
    })
}

impl View for Actions {
    fn title(&self) -> String {
        "Actions".into()
    }

    fn content(&self, _: &Access) -> Markup {
        html! {
            @if self.actions.is_empty() {
                (empty("What operators do on these pages will be listed here: who did what, to which deliveries, and when."))
            } @else {
                (table(&self.actions, self.now))
            }
            (pages(self.is_first, Link::to("actions"), self.next.as_ref()))
        }
    }
}

pub(super) fn table(actions: &[Recorded], now: Timestamp) -> Markup {
    html! {
        div.scroll {
            table.stacked {
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
                            td data-label="When" { (action.began.with_age(now)) }
                            td data-label="Who" { (by(action.operator.as_deref())) }
                            td data-label="What" {
                                a href=(Link::to("action").with("id", action.id)) { (action.action) }
                            }
                            td data-label="On" { (on(action)) }
                            td.number data-label="Deliveries" {
                                @if !matches!(&*action.action, "pause" | "resume") {
                                    (grouped(action.changed))
                                }
                            }
                            td data-label="State" {
                                (state(action.state))
                                @if let Some(due @ 1..) = action.due {
                                    " " span.muted { (grouped(due)) " still due" }
                                }
                            }
                            td data-label="Note" {
                                (short(action.note.as_deref().unwrap_or_default(), 120))
                            }
                        }
                    }
                }
            }
        }
    }
}

pub(super) fn on(action: &Recorded) -> Markup {
    html! {
        @if let Some(key) = action.key() {
            a href=(key.link("delivery")) { (short(&key.id, 60)) }
            " of "
        }
        (visible(action.endpoint.as_deref().unwrap_or("several endpoints")))
        @if let Some(selection) = &action.selection { ": " (visible(selection)) }
    }
}

pub(super) fn by(operator: Option<&str>) -> Markup {
    html! {
        @match operator {
            Some(operator) => { (short(operator, 60)) }
            None => { span.muted { "not named" } }
        }
    }
}
