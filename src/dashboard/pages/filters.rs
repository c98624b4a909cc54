//! The form with the filters of the lists.

use maud::{Markup, html};

use super::super::html::{Timestamp, hidden, visible};
use super::super::selection::{Selection, State};

pub(super) fn filters(selection: &Selection, known: &[String]) -> Markup {
    let states = [
        (State::Failing, "Failing"),
        (State::Dead, "Dead"),
        (State::Due, "Due"),
        (State::Recorded, "Recorded only"),
        (State::Processed, "Processed"),
    ];
    let is_refined =
        selection.tenant.is_some() || selection.from.is_some() || selection.until.is_some();
    html! {
        form.filters action="deliveries" {
            label {
                "Endpoint "
                select name="endpoint" {
                    option value="" { "All" }
                    @for endpoint in known {
                        option value=(endpoint)
                            selected[selection.endpoint.as_ref() == Some(endpoint)]
                        {
                            (visible(endpoint))
                        }
                    }
                    // An unknown endpoint stays selected, so that the form does not silently show
                    // another one.
                    @if let Some(endpoint) = &selection.endpoint && !known.contains(endpoint) {
                        option value=(endpoint) selected { (visible(endpoint)) }
                    }
                }
            }
            label {
                "State "
                select name="state" {
                    @for (value, name) in states {
                        option value=(value.as_str()) selected[selection.state == value] { (name) }
                    }
                }
            }
            label {
                "Event type "
                input name="event_type" value=[&selection.event_type] autocomplete="off"
                    spellcheck="false";
            }
            details.more open[is_refined] {
                summary { "More" }
                label {
                    "Tenant "
                    input name="tenant" value=[&selection.tenant] autocomplete="off"
                        spellcheck="false";
                }
                (time("From (UTC) ", "from", selection.from))
                (time("Until (UTC) ", "until", selection.until))
            }
            (hidden(&[("reason", selection.reason.as_deref())]))
            button { "Show" }
            @if selection.reason.is_some() {
                a href=(selection.without_reason().link("deliveries")) { "Any reason" }
            }
        }
    }
}

fn time(label: &str, name: &str, time: Option<Timestamp>) -> Markup {
    html! {
        label { (label) input type="datetime-local" name=(name) value=[time.map(Timestamp::field)]; }
    }
}
