//! The problems that an endpoint can have, by name. The function `endpoint_problems` in Postgres
//! (`migrations/functions.sql`) decides when an endpoint has a problem such as `failing`.

use std::fmt;

/// A problem of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Problem {
    /// Deliveries have failed, and wait for another attempt, for an operator or for their provider.
    Failing,
    /// Many deliveries failed in a row, so the [breaker](crate::Keep::breaker) is open, and one delivery is tried at a
    /// time.
    Probing,
    /// Recovery has tried to run deliveries again, but the requests reached no layer of the endpoint, or the deliveries
    /// were kept by another version of this crate.
    Unreached,
    /// Deliveries are due, but no process with a [`Recovery`](crate::Recovery) for the endpoint has reported for two
    /// minutes.
    Unserved,
    /// No authentic request has arrived for longer than [`expect_every`](crate::IdempotentWebhook::expect_every)
    /// allows.
    Silent,
    /// [`Reconcile`](crate::Reconcile) has failed, has left something out, or is late by more than an hour.
    NotReconciled,
    /// The endpoint ignores events of a type that it never had before, and that matches no name in its table of event
    /// types ([which types are new](crate::documentation::operating#event-types)).
    NewEventType,
    /// Events of a type that has a handler no longer arrive ([when a type has
    /// stopped](crate::documentation::operating#event-types)).
    EventTypeStopped,
    /// The provider's subscription for the endpoint is not as [`Subscriptions`](crate::subscriptions::Subscriptions)
    /// expects it: events do not arrive, arrive twice, or have another version.
    SubscriptionDiffers,
    /// For a day, the provider could not be asked for its subscription for the endpoint: a key is wrong, or the API
    /// fails.
    NotCompared,
    /// During the last day, payloads had another version than the provider is
    /// [expected](crate::Provider::expect_version) to send, or another [mode](crate::Provider::expect_livemode). If the
    /// signature does not cover the version, an attacker with a captured request can cause this problem.
    OtherVersion,
    /// A background task has stopped although its process is alive: the task has not finished its work in the time that
    /// the work may take. The subject is the task's name, such as `recovery`.
    Stalled,
}

impl Problem {
    const ALL: [Self; 12] = [
        Self::Failing,
        Self::Probing,
        Self::Unreached,
        Self::Unserved,
        Self::Silent,
        Self::NotReconciled,
        Self::NewEventType,
        Self::EventTypeStopped,
        Self::SubscriptionDiffers,
        Self::NotCompared,
        Self::OtherVersion,
        Self::Stalled,
    ];

    /// The name in the log, such as `not reconciled`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failing => "failing",
            Self::Probing => "probing",
            Self::Unreached => "unreached",
            Self::Unserved => "unserved",
            Self::Silent => "silent",
            Self::NotReconciled => "not reconciled",
            Self::NewEventType => "new event type",
            Self::EventTypeStopped => "event type stopped",
            Self::SubscriptionDiffers => "subscription differs",
            Self::NotCompared => "not compared",
            Self::OtherVersion => "other version",
            Self::Stalled => "stalled",
        }
    }

    /// The explanation for the log.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::Failing => "deliveries have failed and wait",
            Self::Probing => {
                "many deliveries have failed in a row, so one is tried at a time, and the rest wait without \
                 using up attempts"
            }
            Self::Unreached => {
                "recovery tried to run deliveries again, but they reached no layer of the endpoint, or were kept by \
                 another version of idempotent-webhook"
            }
            Self::Unserved => {
                "webhook deliveries are due, but no process runs them: deploy the layer of this endpoint \
                 again, or discard them"
            }
            Self::Silent => "no authentic request has come for longer than expected",
            Self::NotReconciled => {
                "the provider's list of events was not read completely, or not in time"
            }
            Self::NewEventType => {
                "events of a type that this endpoint never had before are ignored: was a type renamed? Give it \
                 a handler, or name it in `Events::ignore`"
            }
            Self::EventTypeStopped => {
                "events of a type that has a handler no longer come: was the type renamed, or has the \
                 subscription at the provider changed?"
            }
            Self::SubscriptionDiffers => {
                "the provider's subscription is not as the layer expects it: the log and the table \
                 `subscriptions` say what differs"
            }
            Self::NotCompared => {
                "the provider could not be asked for its subscription for a day, as with a wrong key: the log and \
                 the table `subscriptions` say why"
            }
            Self::OtherVersion => "payloads have another version or mode than expected",
            Self::Stalled => {
                "a background task has stopped, although its process lives: the log of that process names the task \
                 at ERROR. Restart the process"
            }
        }
    }

    /// All names. A later version may add names.
    pub(crate) fn names() -> [&'static str; 12] {
        Self::ALL.map(Self::as_str)
    }

    pub(crate) fn read(text: &str) -> sqlx::Result<Self> {
        let problem = Self::ALL.into_iter().find(|known| known.as_str() == text);
        problem.ok_or_else(|| {
            let unknown = format!("an endpoint has the unknown problem {text:?}");
            sqlx::Error::Decode(unknown.into())
        })
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_that_of_the_function_and_of_the_guide() {
        let functions = include_str!("../../migrations/functions.sql");
        let guide = include_str!("../documentation/operating.md");
        for name in Problem::names() {
            assert!(functions.contains(&format!("'{name}'")), "{name}");
            assert!(guide.contains(&format!("\n| `{name}` | ")), "{name}");
        }
    }
}
