//! The lists of failing, due and processed deliveries.

use maud::{Markup, Render, html};
use serde::Serialize;

use super::super::cursor::Cursor;
use super::super::error::PageError;
use super::super::html::{Table, Timestamp, empty, pages, select, short, state, status, visible};
use super::super::params::{Link, Params};
use super::super::rows::{self, Delivery};
use super::super::selection::{Selection, State};
use super::super::view::View;
use super::super::{Access, Shared};
use super::filters::filters;
use super::{failing, processed};

#[derive(Serialize)]
pub(in crate::dashboard) struct Deliveries {
    now: Timestamp,
    selection: Selection,
    deliveries: Vec<Delivery>,
    /// The next page.
    next: Option<Link>,
    /// How far the page has searched, if its time was up before it was full. The next page may show more.
    searched_to: Option<Timestamp>,
    #[serde(skip)]
    known: Vec<String>,
    #[serde(skip)]
    is_first: bool,
}

pub(in crate::dashboard) async fn read(
    shared: &Shared,
    access: &Access,
    params: &Params,
) -> Result<Deliveries, PageError> {
    let mut selection = Selection::of(params, access)?;
    let mut reading = shared.database.read().await?;
    let now = Timestamp(rows::now(&mut reading).await?);
    let known = rows::endpoints(&mut reading, access).await?;
    let endpoints = selection.endpoints(&mut reading, access).await?;
    selection.look_up_reason(&mut reading, &endpoints).await?;
    let cursor = Cursor::of(params);
    let is_first = cursor.is_none();
    let listed = match selection.state {
        State::Processed => processed::list(&mut reading, &endpoints, &selection, cursor).await?,
        _ => failing::list(&mut reading, access, &endpoints, &selection, cursor).await?,
    };
    reading.end();
    let link = selection.link("deliveries");
    Ok(Deliveries {
        now,
        deliveries: listed.rows,
        next: listed.next.map(|next| next.add_to(link)),
        searched_to: listed.searched_to,
        known,
        is_first,
        selection,
    })
}

impl View for Deliveries {
    fn title(&self) -> String {
        "Deliveries".into()
    }

    fn content(&self, viewer: &Access) -> Markup {
        let may_operate = viewer.may_operate();
        let first = self.selection.link("deliveries");
        html! {
            (filters(&self.selection, &self.known))
            @if let Some(reason) = &self.selection.reason_example {
                p { "With a reason like “" span.reason { (visible(reason)) } "”." }
            }
            @if may_operate { (self.bulk_actions(viewer)) }
            @if !self.deliveries.is_empty() {
                (self.table(viewer))
            } @else if self.searched_to.is_none() {
                (empty(self.selection.meaning_of_nothing()))
            }
            @if let Some(to) = self.searched_to {
                p.muted { "Searched back to " (to) ". The next page continues from there." }
            }
            @if self.is_processed() && self.selection.tenants.is_some() {
                p.muted { "With a filter by tenant, only deliveries whose ids are separate for each tenant are listed." }
            }
            (pages(self.is_first, first, self.next.as_ref()))
        }
    }
}

impl Deliveries {
    fn is_processed(&self) -> bool {
        self.selection.state == State::Processed
    }

    fn bulk_actions(&self, viewer: &Access) -> Markup {
        let selection = &self.selection;
        let confirm = |action: &str| {
            let link = selection.link("confirm");
            link.with("action", action).with("before", self.now.0)
        };
        let erase = html! {
            @if viewer.may_erase() {
                a.button.danger href=(confirm("erase")) { "Erase all of these…" }
            }
        };
        html! {
            @if !selection.is_for_bulk_actions() {
                @if selection.endpoint.is_none() {
                    p.muted { "Choose an endpoint to change all of its deliveries." }
                }
            } @else if self.is_processed() {
                p.actions {
                    a.button href=(confirm("reprocess")) { "Process all of these again…" }
                    (erase)
                }
            } @else {
                p.actions {
                    @if selection.state != State::Recorded {
                        a.button href=(confirm("retry")) { "Retry all of these…" }
                    }
                    a.button.danger href=(confirm("discard")) { "Discard all of these…" }
                    (erase)
                }
            }
        }
    }

    fn table(&self, viewer: &Access) -> Markup {
        let may_operate = viewer.may_operate();
        let table = self.list(may_operate);
        if !may_operate {
            return table.render();
        }
        html! {
            form.selection method="post" action="confirm" {
                (self.selection.hidden())
                (table)
                p.actions {
                    @if self.is_processed() {
                        button name="action" value="reprocess" { "Process the selected again…" }
                    } @else {
                        button name="action" value="retry" { "Retry the selected…" }
                        button.danger name="action" value="discard" { "Discard the selected…" }
                    }
                    @if viewer.may_erase() {
                        button.danger name="action" value="erase" { "Erase the selected…" }
                    }
                }
            }
        }
    }

    fn list(&self, may_operate: bool) -> Table<'_, Delivery> {
        let time =
            |at: Option<Timestamp>| html! { @if let Some(at) = at { (at.with_age(self.now)) } };
        let attempts = |delivery: &Delivery| {
            html! { @if let Some(attempts) = delivery.attempts { (attempts) } }
        };
        let mut table = Table::of(&self.deliveries).class("deliveries");
        if may_operate {
            table = table.unnamed("Selected", |delivery| select(&delivery.key));
        }
        table = table.styled("id", "Delivery", |delivery| {
            html! {
                a href=(delivery.key.link("delivery")) { (short(&delivery.key.id, 60)) }
                @if let Some(tenant) = &delivery.tenant {
                    " " span.muted { (short(tenant, 40)) }
                }
            }
        });
        if self.selection.endpoint.is_none() {
            table = table.column("Endpoint", |delivery| {
                html! { (visible(&delivery.key.endpoint)) }
            });
        }
        table = table.column("Event type", |delivery| {
            short(delivery.event_type.as_deref().unwrap_or_default(), 60)
        });
        if self.is_processed() {
            return table
                .column("Processed", move |delivery| time(delivery.processed))
                .number("Attempts", attempts)
                .column("Request", |delivery| {
                    html! {
                        @if delivery.has_request == Some(true) { "kept" }
                        @else { span.muted { "not kept" } }
                    }
                });
        }
        table
            .column("State", |delivery| state(&delivery.state))
            .number("Attempts", attempts)
            .column("Last failed", move |delivery| time(delivery.last_failed))
            .column("Next attempt", move |delivery| {
                time(delivery.next_attempt.filter(|_| delivery.state == "due"))
            })
            .column("Status", |delivery| status(delivery.status))
            .styled("reason", "Reason", |delivery| {
                short(delivery.reason.as_deref().unwrap_or_default(), 100)
            })
    }
}
