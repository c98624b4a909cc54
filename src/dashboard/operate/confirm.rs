//! Shows what an action will do, and to how many deliveries, before it runs.

use axum::response::Response;
use maud::{Markup, html};
use serde::Serialize;

use super::super::database::Reading;
use super::super::environments::Environments;
use super::super::error::{PageError, is_timeout};
use super::super::html::{Layout, Timestamp, hidden, short, visible};
use super::super::params::{Link, Params};
use super::super::rows::{self, Key, grouped};
use super::super::selection::Selection;
use super::super::view::View;
use super::super::{Access, Shared};
use super::action::Action;
use super::parse_action::{Order, Target};
use crate::recovery::operator::{self, Scope};

/// Deliveries are counted exactly up to this number.
const EXACT: i64 = 100_000;

/// Counting stops when a statement takes longer than this.
const TIMEOUT: &str = "2s";

/// How many deliveries there are.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Number {
    Exactly(i64),
    MoreThan(i64),
    TooManyToCount,
}

/// What an action will do, and to how many deliveries.
#[derive(Serialize)]
pub(in crate::dashboard) struct Confirmation {
    action: &'static str,
    /// Set if the action changes deliveries.
    deliveries: Option<Number>,
    #[serde(skip)]
    title: String,
    #[serde(skip)]
    content: Markup,
}

impl View for Confirmation {
    fn title(&self) -> String {
        self.title.clone()
    }

    fn content(&self, _: &Access) -> Markup {
        self.content.clone()
    }
}

/// The page that comes before the confirmation, for somebody who arrives from another site.
pub(in crate::dashboard) fn first(layout: &Layout) -> Response {
    let text = "The next page shows what will change.";
    layout.page("Before anything is changed", html! { p { (text) } })
}

pub(in crate::dashboard) async fn read(
    shared: &Shared,
    access: &Access,
    params: &Params,
) -> Result<Confirmation, PageError> {
    let Order { action, target } = Order::of(params, access)?;
    let (title, content, deliveries) = match target {
        Target::Endpoint(endpoint) => {
            let fields = hidden(&[("endpoint", Some(&*endpoint))]);
            let content = html! {
                p { (visible(&endpoint)) }
                (form(action, &fields, "overview"))
            };
            (format!("{} this endpoint?", action.verb()), content, None)
        }
        Target::Database(environment) => {
            let mut reading = shared.database.read().await?;
            let own = Environments::own(&mut reading).await?;
            reading.end();
            let title = format!("Adopt this database for {environment}?");
            (title, adopt(action, own.as_deref(), &environment), None)
        }
        Target::Deliveries(keys) => {
            let back = match &*keys {
                [key] => key.link("delivery"),
                // Back to the list in which the deliveries were selected.
                _ => Selection::of(params, access)?.link("deliveries"),
            };
            let number = Number::Exactly(keys.len() as i64);
            let content = one_by_one(action, &keys, &back);
            (title(action, &number), content, Some(number))
        }
        Target::All(_, mut selection) => {
            let mut reading = shared.database.read().await?;
            selection.bound(rows::now(&mut reading).await?);
            let endpoints = selection.endpoints(&mut reading, access).await?;
            selection.look_up_reason(&mut reading, &endpoints).await?;
            // Counted last, because nothing can be read in this transaction after a timeout.
            let number = count(&mut reading, &endpoints, &selection).await?;
            reading.end();
            let content = all(action, access, endpoints.len(), &selection);
            (title(action, &number), content, Some(number))
        }
    };
    Ok(Confirmation {
        action: action.as_str(),
        deliveries,
        title,
        content,
    })
}

async fn count(
    reading: &mut Reading,
    endpoints: &[String],
    selection: &Selection,
) -> Result<Number, PageError> {
    reading.limit_statements(TIMEOUT).await?;
    let (filter, mut all) = (selection.filter(), 0);
    for endpoint in endpoints {
        let scope = Scope {
            endpoint,
            tenant: None,
        };
        match operator::count(reading, scope, &filter, EXACT + 1).await {
            Ok(number) => all += number,
            Err(error) if is_timeout(&error) => return Ok(Number::TooManyToCount),
            Err(error) => return Err(error.into()),
        }
        if all > EXACT {
            return Ok(Number::MoreThan(EXACT));
        }
    }
    Ok(Number::Exactly(all))
}

fn title(action: Action, number: &Number) -> String {
    let deliveries = match number {
        Number::Exactly(1) => "1 delivery".to_owned(),
        Number::Exactly(number) => format!("{} deliveries", grouped(*number)),
        Number::MoreThan(number) => format!("more than {} deliveries", grouped(*number)),
        Number::TooManyToCount => "deliveries that are too many to count".to_owned(),
    };
    match action {
        Action::Reprocess | Action::Forget => format!("Process {deliveries} again?"),
        Action::Erase => format!("Erase the content of {deliveries}?"),
        action => format!("{} {deliveries}?", action.verb()),
    }
}

fn adopt(action: Action, own: Option<&str>, environment: &str) -> Markup {
    let fields = hidden(&[("environment", Some(environment))]);
    html! {
        p {
            @match own {
                Some(own) => { "It belongs to the environment " code { (visible(own)) } "." }
                None => { "It has no environment." }
            }
            " From now on, processes of " code { (environment) } " run the kept deliveries, and processes of other \
             environments do not."
        }
        p {
            "Each endpoint with due or dead deliveries is paused. Discard the deliveries that should not run, and then \
             resume the endpoint."
        }
        (form(action, &fields, "overview"))
    }
}

fn one_by_one(action: Action, keys: &[Key], back: &Link) -> Markup {
    let fields = html! {
        @for key in keys { input type="hidden" name="key" value=(key.link("").query()); }
    };
    let meaning = match keys {
        [_] => action.meaning_for_one(),
        _ => action.meaning(),
    };
    html! {
        p { (meaning) }
        (form(action, &fields, &back.to_string()))
        ul.ids {
            @for key in keys {
                li {
                    code { (short(&key.id, 120)) } " "
                    span.muted {
                        (visible(&key.endpoint))
                        @if let Some(tenant) = key.tenant() { ", " (short(tenant, 60)) }
                    }
                }
            }
        }
    }
}

fn all(action: Action, access: &Access, endpoints: usize, selection: &Selection) -> Markup {
    let before = selection.before.map(|before| before.to_string());
    let fields = html! {
        (selection.hidden())
        (hidden(&[("before", before.as_deref())]))
    };
    html! {
        p {
            @match &selection.endpoint {
                Some(endpoint) => { "Of the endpoint " strong { (visible(endpoint)) } }
                None => { "Of " strong { "all " (endpoints) " endpoints" } }
            }
            ": " (visible(&selection.in_words())) "."
        }
        @if let Some(before) = selection.before {
            p { "A delivery that the provider has sent again since you saw the list, at " (Timestamp(before)) ", is \
                left out." }
        }
        p {
            (action.meaning())
            " This happens in the background, a few hundred deliveries at a time"
            @if access.tenants().is_none() { ", and can be cancelled" }
            ". Deliveries that are running at that moment are not changed, but counted."
        }
        (form(action, &fields, &selection.link("deliveries").to_string()))
    }
}

fn form(action: Action, fields: &Markup, back: &str) -> Markup {
    html! {
        form.confirm method="post" action="act" {
            (hidden(&[("action", Some(action.as_str()))]))
            (fields)
            p.actions {
                button.danger[action.is_final()].primary[!action.is_final()] { (action.verb()) }
                " "
                a.button href=(back) { "Do nothing" }
            }
        }
    }
}
