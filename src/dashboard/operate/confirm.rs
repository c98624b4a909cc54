//! What an action will do, and to how many, before it is done.

use axum::response::Response;
use maud::{Markup, html};

use super::super::database::Reading;
use super::super::error::{PageError, is_timeout};
use super::super::html::{Layout, Timestamp, hidden, short, visible};
use super::super::params::{Link, Params};
use super::super::rows::{Key, grouped};
use super::super::selection::Selection;
use super::super::{Access, Shared};
use super::order::{Action, Order, Target};
use crate::recovery::control::{self, Of};

/// Up to here, the number is exact.
const EXACT: i64 = 100_000;

/// Counting more slowly than this is given up.
const TIMEOUT: &str = "2s";

/// How many there are.
enum Number {
    Exactly(i64),
    MoreThan(i64),
    TooManyToCount,
}

pub(in crate::dashboard) async fn confirm(
    shared: &Shared,
    access: &Access,
    layout: Layout,
    params: &Params,
) -> Result<Response, PageError> {
    if !access.may_operate() {
        return Err(PageError::forbidden(
            "You may look, but not change anything.",
        ));
    }
    let Order { action, target } = Order::of(params)?;
    let (title, content) = match target {
        Target::Endpoint(endpoint) => (
            format!("{} this endpoint?", verb(action)),
            html! {
                p { (visible(&endpoint)) }
                (form(action, &hidden(&[("endpoint", Some(&*endpoint))]), "overview"))
            },
        ),
        Target::Deliveries(keys) => {
            let number = i64::try_from(keys.len()).unwrap_or(i64::MAX);
            let back = match &*keys {
                [key] => key.link("delivery"),
                // The list in which they were selected.
                _ => Selection::of(params)?.link("deliveries"),
            };
            (
                title(action, &Number::Exactly(number)),
                one_by_one(action, &keys, &back),
            )
        }
        Target::All {
            endpoint,
            mut selection,
        } => {
            let mut reading = shared.database.read().await?;
            let endpoints = std::slice::from_ref(&endpoint);
            selection.look_up_reason(&mut reading, endpoints).await?;
            // Last: after a timeout, nothing can be read any more.
            let number = count(&mut reading, &endpoint, &selection).await?;
            (title(action, &number), all(action, &endpoint, &selection))
        }
    };
    Ok(layout.page(&title, content))
}

async fn count(
    reading: &mut Reading,
    endpoint: &str,
    selection: &Selection,
) -> Result<Number, PageError> {
    reading.limit_statements(TIMEOUT).await?;
    let of = Of {
        endpoint,
        tenant: None,
    };
    match control::count(reading, of, &selection.filter(), EXACT + 1).await {
        Ok(number) if number > EXACT => Ok(Number::MoreThan(EXACT)),
        Ok(number) => Ok(Number::Exactly(number)),
        Err(error) if is_timeout(&error) => Ok(Number::TooManyToCount),
        Err(error) => Err(error.into()),
    }
}

fn verb(action: Action) -> &'static str {
    match action {
        Action::Retry => "Retry",
        Action::Discard => "Discard",
        Action::Forget => "Process again",
        Action::Pause => "Pause",
        Action::Resume => "Resume",
    }
}

fn title(action: Action, number: &Number) -> String {
    let deliveries = match number {
        Number::Exactly(1) => "1 delivery".to_owned(),
        Number::Exactly(number) => format!("{} deliveries", grouped(*number)),
        Number::MoreThan(number) => format!("more than {} deliveries", grouped(*number)),
        Number::TooManyToCount => "deliveries that are too many to count".to_owned(),
    };
    match action {
        Action::Forget => format!("Process {deliveries} again?"),
        action => format!("{} {deliveries}?", verb(action)),
    }
}

fn meaning_for_one(action: Action) -> &'static str {
    match action {
        Action::Retry => "It runs again now, with a new schedule of attempts.",
        Action::Discard => {
            "It is deleted with its request, and does not run again. If the provider delivers it \
             again, it is a new delivery. This cannot be undone."
        }
        Action::Forget => {
            "What is known of it is deleted, so that it is processed again when the provider \
             delivers it again: this page does not have its request. Undo the effects of the first \
             time before that. This cannot be undone."
        }
        Action::Pause | Action::Resume => "",
    }
}

fn meaning(action: Action) -> &'static str {
    match action {
        Action::Retry => "They run again now, with a new schedule of attempts.",
        Action::Discard => {
            "They are deleted with their requests, and do not run again. If the provider delivers \
             one again, it is a new delivery. This cannot be undone."
        }
        Action::Forget => {
            "What is known of them is deleted, so that they are processed again when the provider \
             delivers them again: this page does not have their requests. Undo the effects of \
             the first time before that. This cannot be undone."
        }
        Action::Pause | Action::Resume => "",
    }
}

fn one_by_one(action: Action, keys: &[Key], back: &Link) -> Markup {
    let fields = html! {
        @for key in keys { input type="hidden" name="key" value=(key.link("").query()); }
    };
    let meaning = match keys {
        [_] => meaning_for_one(action),
        _ => meaning(action),
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

fn all(action: Action, endpoint: &str, selection: &Selection) -> Markup {
    let before = selection.before.map(|before| before.to_string());
    let fields = html! {
        (hidden(&selection.fields()))
        (hidden(&[("before", before.as_deref())]))
    };
    html! {
        p {
            "Of the endpoint " strong { (visible(endpoint)) } ": " (visible(&selection.in_words()))
            "."
        }
        @if let Some(before) = selection.before {
            p {
                "Those that fail after " (Timestamp(before)) ", when you saw them, are left out."
            }
        }
        p {
            (meaning(action))
            " It is done in the background, a thousand at a time, and can be cancelled."
        }
        (form(action, &fields, &selection.link("deliveries").to_string()))
    }
}

fn form(action: Action, fields: &Markup, back: &str) -> Markup {
    let is_final = matches!(action, Action::Discard | Action::Forget);
    html! {
        form.confirm method="post" action="act" {
            (hidden(&[("action", Some(action.as_str()))]))
            (fields)
            p.actions {
                button.danger[is_final].primary[!is_final] { (verb(action)) }
                " "
                a.button href=(back) { "Do nothing" }
            }
        }
    }
}
