//! The state of an endpoint, such as `failing` or `fine`: the worst problem that is known.

use std::cmp::Ordering;

use serde::Serialize;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::activity::{self, Recent};

/// An endpoint is `behind` if a delivery has waited longer than this for its first attempt, in
/// seconds.
const BEHIND_AFTER: f64 = 60.0;

/// How many hours count as recent: the current hour, which may have just started, and the one
/// before.
const RECENT: usize = 2;

/// The state of an endpoint. The variants are ordered from the worst to the best.
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

    /// Whether the endpoint needs no attention. A `Mixed` state goes away without any action, or
    /// turns into a worse state.
    pub(super) fn is_well(self) -> bool {
        matches!(self, Self::Mixed | Self::Quiet | Self::Fine)
    }

    pub(super) fn meaning(self) -> &'static str {
        match self {
            Self::Unserved => {
                "No process runs Recovery for this endpoint, so its due deliveries do not run."
            }
            Self::Failing => {
                "Deliveries have failed and wait for another attempt, an operator or their provider, or \
                 nothing was processed since the last failure."
            }
            Self::Stalled => {
                "A background task has stopped, although its process is alive. The log of that process names the task \
                 at level ERROR."
            }
            Self::Rejecting => {
                "The last request was rejected, and no authentic request has arrived since."
            }
            Self::Silent => {
                "No authentic request has arrived for longer than expected. The provider may have switched the webhook \
                 off."
            }
            Self::Probing => {
                "Many deliveries failed in a row, so recovery tries one delivery at a time."
            }
            Self::Behind => {
                "Deliveries have waited more than a minute for their first attempt, or recovery attempts reach no \
                 layer."
            }
            Self::Paused => {
                "An operator has paused recovery. Requests are still handled, but a layer that accepts deliveries \
                 before it runs the handler only keeps them."
            }
            Self::Unreconciled => {
                "Reconciliation has failed, has left something out, or is more than an hour late. \
                 Deliveries that never arrived may be missing."
            }
            Self::TypeStopped => {
                "Events of a type that has a handler no longer arrive. The endpoint's page shows the type."
            }
            Self::NewType => {
                "Ignored events have a type that this endpoint never received before. The endpoint's page shows the \
                 type."
            }
            Self::Differing => {
                "The provider's subscription is not what the layer expects. Events may be missing, arrive twice, or \
                 have another version."
            }
            Self::Uncompared => {
                "For a day, the provider's subscription could not be read: a key is wrong, or the provider's API \
                 fails. Earlier findings may be out of date."
            }
            Self::OtherVersion => {
                "In the last day, payloads did not have the expected version or mode. They were still handled."
            }
            Self::Mixed => {
                "Attempts failed or requests were rejected in this hour or the hour before. Others \
                 succeeded."
            }
            Self::Quiet => "Nothing was counted in the last 24 hours.",
            Self::Fine => {
                "Nothing failed or was rejected in this hour or the hour before, and nothing has waited for long."
            }
        }
    }
}

impl Serialize for State {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Determines the state of an endpoint from its problems and from its activity in the last hours.
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

/// Whether one event happened, and the other has not happened since.
fn is_later(one: Option<f64>, other: Option<f64>) -> bool {
    matches!(one.partial_cmp(&other), Some(Ordering::Greater))
}
