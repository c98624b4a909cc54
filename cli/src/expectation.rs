//! The responses that are expected from an idempotent endpoint.

use std::fmt;

use crate::sending::{Answer, Sent};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Expectation {
    /// The same delivery, sent several times.
    Once,
    /// Different deliveries.
    EachForItself,
    /// Requests that do not carry a valid signature of the provider.
    Refused,
}

impl Expectation {
    /// Whether the status of an answer is one of those that are expected.
    pub fn allows(self, answer: &Answer) -> bool {
        match self {
            Self::Once | Self::EachForItself => answer.is_success(),
            Self::Refused => answer.status == 401,
        }
    }

    pub fn is_met(self, all: &[Sent]) -> bool {
        let is_allowed = |sent: &Sent| sent.as_ref().is_ok_and(|answer| self.allows(answer));
        let count = |outcome| {
            let answers = all.iter().filter_map(|sent| sent.as_ref().ok());
            answers
                .filter(|answer| answer.outcome.as_deref() == Some(outcome))
                .count()
        };
        match self {
            _ if !all.iter().all(is_allowed) => false,
            Self::Once => count("processed") <= 1,
            Self::EachForItself => count("duplicate") == 0,
            Self::Refused => true,
        }
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Once => "every answer 2xx, and at most one of them processed",
            Self::EachForItself => "every answer 2xx, and none of them duplicate",
            Self::Refused => "every answer 401",
        })
    }
}
