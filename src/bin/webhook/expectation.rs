//! What the answers of an idempotent endpoint have to be.

use std::fmt;

use crate::sending::{Answer, Sent};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Expectation {
    /// One delivery, sent again.
    Once,
    /// Different deliveries.
    EachForItself,
    /// Not what the provider signed.
    Refused,
}

impl Expectation {
    pub fn is_met(self, all: &[Sent]) -> bool {
        let every = |is_right: fn(&Answer) -> bool| {
            all.iter().all(|sent| sent.as_ref().is_ok_and(is_right))
        };
        let count = |outcome| {
            let answers = all.iter().filter_map(|sent| sent.as_ref().ok());
            answers
                .filter(|answer| answer.outcome.as_deref() == Some(outcome))
                .count()
        };
        match self {
            Self::Once => every(Answer::is_success) && count("processed") <= 1,
            Self::EachForItself => every(Answer::is_success) && count("duplicate") == 0,
            Self::Refused => every(|answer| answer.status == 401),
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
