//! The record of actions: which operator did what.

use maud::{Markup, Render, html};
use serde::Serialize;

use super::super::cursor::PAGE;
use super::super::error::PageError;
use super::super::html::{Table, Timestamp, empty, pages, short, state, visible};
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
    Table::of(actions)
        .column("When", |action| action.began.with_age(now))
        .column("Who", |action| by(action.operator.as_deref()))
        .column("What", |action| {
            let page = Link::to("action").with("id", action.id);
            html! { a href=(page) { (action.action) } }
        })
        .column("On", on)
        .number("Deliveries", |action| {
            html! {
                @if !matches!(&*action.action, "pause" | "resume" | "adopt") { (grouped(action.changed)) }
            }
        })
        .column("State", |action| {
            html! {
                (state(action.state))
                @if let Some(due @ 1..) = action.due {
                    " " span.muted { (grouped(due)) " still due" }
                }
            }
        })
        .column("Note", |action| {
            short(action.note.as_deref().unwrap_or_default(), 120)
        })
        .render()
}

pub(super) fn on(action: &Recorded) -> Markup {
    html! {
        @if let Some(key) = action.key() {
            a href=(key.link("delivery")) { (short(&key.id, 60)) }
            " of "
        }
        (visible(on_what(action)))
        @if let Some(selection) = &action.selection { ": " (visible(selection)) }
    }
}

fn on_what(action: &Recorded) -> &str {
    match &*action.action {
        "adopt" => "the database",
        _ => action.endpoint.as_deref().unwrap_or("several endpoints"),
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
