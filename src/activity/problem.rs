//! The problems that an endpoint can have, by name. What is one, such as `failing`, is decided by the function
//! `endpoint_problems` in Postgres (`migrations/functions.sql`).

use std::fmt;

/// A problem of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Problem {
    /// Deliveries have failed, and wait for another attempt, for an operator or for their provider.
    Failing,
    /// Many failed in a row, so that one delivery is tried at a time: the [breaker](crate::Keep::breaker) is open.
    Probing,
    /// Deliveries that were run again have reached no layer of the endpoint, or another version of this crate has kept them.
    Unreached,
    /// Deliveries are due, and no process with a [`Recovery`](crate::Recovery) of the endpoint was heard of for two minutes.
    Unserved,
    /// No authentic request has come for longer than [`expect_every`](crate::IdempotentWebhook::expect_every) says.
    Silent,
    /// [`Reconcile`](crate::Reconcile) has failed, has left something out, or is late by more than an hour.
    NotReconciled,
    /// Events of a type are ignored that the endpoint never had before, and that no name of its table matches
    /// ([which types are new](crate::documentation::operating#event-types)).
    NewEventType,
    /// Events of a type that has a handler do not come any more
    /// ([when a type has stopped](crate::documentation::operating#event-types)).
    EventTypeStopped,
    /// The provider's subscription of the endpoint is not as [`Subscriptions`](crate::subscriptions::Subscriptions) expects
    /// it: events do not come, come twice, or are of another version.
    SubscriptionDiffers,
    /// For a day, the provider could not be asked for its subscription of the endpoint: a key is wrong, or the API fails.
    NotCompared,
    /// Over the last day, payloads had another version than the provider is
    /// [expected](crate::Provider::expect_version) to send, or another [mode](crate::Provider::expect_livemode). Where the signature does not cover the version, an attacker
    /// with a captured request can cause it.
    OtherVersion,
    /// A background task of a process has stopped, although the process lives: it has not finished what it does in the time
    /// that this may take. The subject is its name, such as `recovery`.
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

    /// The text for the log.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::Failing => "deliveries have failed and wait",
            Self::Probing => {
                "many deliveries have failed in a row, so one is tried at a time, and the rest wait without \
                 using up attempts"
            }
            Self::Unreached => {
                "deliveries that were run again have reached no layer of the endpoint, or another version of \
                 idempotent-webhook has kept them"
            }
            Self::Unserved => {
                "webhook deliveries are due, but no process runs them: deploy the layer of this endpoint \
                 again, or discard them"
            }
            Self::Silent => "no authentic request has come for longer than is expected",
            Self::NotReconciled => {
                "the provider's list of events was not read as a whole, or is late"
            }
            Self::NewEventType => {
                "events of a type that this endpoint never had before are ignored: was one renamed? Give it a \
                 handler, or name it in `Events::ignore`"
            }
            Self::EventTypeStopped => {
                "events of a type that has a handler do not come any more: was it renamed, or is the \
                 subscription at the provider another one?"
            }
            Self::SubscriptionDiffers => {
                "the provider's subscription is not as the layer expects it: the log and the table \
                 `subscriptions` say what differs"
            }
            Self::NotCompared => {
                "the provider could not be asked for its subscription for a day, as with a wrong key: the log and \
                 the table `subscriptions` say why"
            }
            Self::OtherVersion => "payloads have another version or mode than is expected",
            Self::Stalled => {
                "a background task has stopped, although its process lives: the log of that process has its name at \
                 ERROR. Restart it"
            }
        }
    }

    /// All names. A later version may know more.
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
