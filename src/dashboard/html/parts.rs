//! Small parts of pages.

use maud::{Markup, html};

use super::invisible::visible;
use crate::dashboard::params::Link;
use crate::dashboard::rows::{Count, Key};

/// A number that may be cut off: `10,000+`.
pub(in crate::dashboard) fn count(count: Count) -> Markup {
    html! { (count.to_string()) }
}

/// A state, as a word with a colour.
pub(in crate::dashboard) fn state(name: &str) -> Markup {
    html! { span.state data-state=(name) { (name) } }
}

pub(in crate::dashboard) fn status(status: Option<i16>) -> Markup {
    html! { @if let Some(status) = status { span.number { (status) } } }
}

/// A list of names, each with its value.
pub(in crate::dashboard) fn facts(facts: &[(&str, Option<Markup>)]) -> Markup {
    html! {
        dl.facts {
            @for (name, value) in facts {
                @if let Some(value) = value {
                    div { dt { (name) } dd { (value) } }
                }
            }
        }
    }
}

/// A text in place of an empty list, which says what the list will show.
pub(in crate::dashboard) fn empty(text: &str) -> Markup {
    html! { p.empty { (text) } }
}

/// Fields of a form that the reader does not fill in.
pub(in crate::dashboard) fn hidden(fields: &[(&str, Option<&str>)]) -> Markup {
    html! {
        @for (name, value) in fields {
            @if let Some(value) = value { input type="hidden" name=(name) value=(value); }
        }
    }
}

/// A box that selects a delivery for an action.
pub(in crate::dashboard) fn select(key: &Key) -> Markup {
    html! {
        label.box {
            input type="checkbox" name="key" value=(key.link("").query())
                aria-label=(format!("Delivery {}", visible(&key.id)));
        }
    }
}

/// A form that consists of one button, which posts an action.
pub(in crate::dashboard) fn button(
    label: &Markup,
    page: &str,
    fields: &[(&str, Option<&str>)],
) -> Markup {
    html! {
        form.inline method="post" action=(page) {
            (hidden(fields))
            button { (label) }
        }
    }
}

/// Links to the first and the next page of a list.
pub(in crate::dashboard) fn pages(is_first: bool, first: Link, next: Option<&Link>) -> Markup {
    html! {
        @if !is_first || next.is_some() {
            nav.pages aria-label="Further pages" {
                @if !is_first { a href=(first) { "First page" } }
                @if let Some(next) = next { a href=(next) rel="next" { "Next page" } }
            }
        }
    }
}

/// A text that a sender has chosen, shortened to this many characters.
pub(in crate::dashboard) fn short(text: &str, characters: usize) -> Markup {
    let cut: String = text.chars().take(characters).collect();
    let is_cut = cut.len() < text.len();
    html! { (visible(&cut)) @if is_cut { "…" } }
}
