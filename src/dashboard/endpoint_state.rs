//! The state of an endpoint, such as `failing` or `fine`: the worst of what is known of it.

use std::cmp::Ordering;

use serde::Serialize;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::activity::{self, Recent};

/// A wait for a first attempt that is longer than this, in seconds, has a cause.
const BEHIND_AFTER: f64 = 60.0;

/// How many hours "the last hour" covers, since the current one has only begun.
const RECENT: usize = 2;

/// The state of an endpoint, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    Unserved,
    Failing,
    Stalled,
    Rejecting,
    Silent,
    Probing,
    Behind,
    Paused,
    Unreconciled,
    TypeStopped,
    NewType,
    Differing,
    Uncompared,
    OtherVersion,
    Mixed,
    Quiet,
    Fine,
}

impl State {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Unserved => "unserved",
            Self::Failing => "failing",
            Self::Rejecting => "rejecting",
            Self::Silent => "silent",
            Self::Probing => "probing",
            Self::Behind => "behind",
            Self::Paused => "paused",
            Self::Unreconciled => "not reconciled",
            Self::TypeStopped => "event type stopped",
            Self::NewType => "new event type",
            Self::Differing => "subscription differs",
            Self::Uncompared => "not compared",
            Self::OtherVersion => "other version",
            Self::Stalled => "stalled",
            Self::Mixed => "mixed",
            Self::Quiet => "quiet",
            Self::Fine => "fine",
        }
    }

    /// Whether nobody needs to look at it. `Mixed` passes by itself, or becomes a worse state.
    pub(super) fn is_well(self) -> bool {
        matches!(self, Self::Mixed | Self::Quiet | Self::Fine)
    }

    pub(super) fn meaning(self) -> &'static str {
        match self {
            Self::Unserved => "No process runs Recovery for it, so due deliveries do not run.",
            Self::Failing => {
                "Deliveries have failed and wait for another attempt, for an operator or for their \
                 provider, or none was processed since the last failure."
            }
            Self::Stalled => {
                "A background task has stopped, although its process lives. The log of that process has its name at \
                 ERROR."
            }
            Self::Rejecting => {
                "The last request was rejected, and no authentic one has come since."
            }
            Self::Silent => {
                "No authentic request has come for longer than usual: the provider may have switched the webhook off."
            }
            Self::Probing => "Many failed in a row, so one delivery is tried at a time.",
            Self::Behind => {
                "Deliveries have waited for their first attempt for more than a minute, or reach no layer."
            }
            Self::Paused => {
                "An operator has paused recovery. Requests are handled as before, but a layer that accepts them first \
                 only keeps them."
            }
            Self::Unreconciled => {
                "Reconciliation has failed, has left something out, or is late by more than an hour. \
                 Deliveries that never came may be missing."
            }
            Self::TypeStopped => {
                "Events of a type that has a handler no longer come. Its page has the type."
            }
            Self::NewType => {
                "Ignored events have a type that the endpoint never had before. Its page has the type."
            }
            Self::Differing => {
                "The provider's subscription is not as the layer expects it. Events may not come, come twice, or \
                 be of another version."
            }
            Self::Uncompared => {
                "For a day, the provider could not be asked for its subscription: a key is wrong, or its API fails. \
                 Earlier findings may be out of date."
            }
            Self::OtherVersion => {
                "Over the last day, payloads had another version or mode than the expected one. They were still \
                 handled."
            }
            Self::Mixed => {
                "Attempts failed or requests were rejected in this hour or the one before. Some have \
                 succeeded."
            }
            Self::Quiet => "Nothing was counted over the last 24 hours.",
            Self::Fine => {
                "Nothing failed or was rejected in this hour or the one before, and nothing has waited for long."
            }
        }
    }
}

impl Serialize for State {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// By its problems, and by what it did over the last hours.
pub(super) fn state(
    row: &PgRow,
    problems: &[&str],
    last: &Recent,
    rejected: Option<f64>,
) -> sqlx::Result<State> {
    let has = |problem| problems.contains(&problem);
    let overdue: Option<f64> = row.try_get("overdue")?;
    let recent = last.hours.iter().rev().take(RECENT);
    let since = recent.clone().next_back().map_or(0.0, |hour| hour.at.0);
    let has_failed = recent.clone().any(|hour| hour.counts.failed > 0);
    let was_rejected = rejected.is_some_and(|rejected| rejected >= since);
    let all = activity::sum(last.hours.iter().map(|hour| &hour.counts));
    Ok(if has("unserved") {
        State::Unserved
    } else if is_later(last.failed, last.processed) {
        State::Failing
    } else if has("stalled") {
        State::Stalled
    } else if is_later(rejected, last.authentic) {
        State::Rejecting
    } else if has("silent") {
        State::Silent
    } else if row.try_get("paused")? {
        State::Paused
    } else if has("probing") {
        State::Probing
    } else if has("failing") {
        State::Failing
    } else if overdue.is_some_and(|overdue| overdue > BEHIND_AFTER) || has("unreached") {
        State::Behind
    } else if has("not reconciled") {
        State::Unreconciled
    } else if has("event type stopped") {
        State::TypeStopped
    } else if has("new event type") {
        State::NewType
    } else if has("subscription differs") {
        State::Differing
    } else if has("not compared") {
        State::Uncompared
    } else if has("other version") {
        State::OtherVersion
    } else if has_failed || was_rejected {
        State::Mixed
    } else if all.total() == 0 && all.accepted == 0 && all.missed == 0 {
        State::Quiet
    } else {
        State::Fine
    })
}

/// Whether one thing happened, and the other one not since.
fn is_later(one: Option<f64>, other: Option<f64>) -> bool {
    matches!(one.partial_cmp(&other), Some(Ordering::Greater))
}
