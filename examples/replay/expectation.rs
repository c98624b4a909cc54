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
            all.iter()
                .all(|sent| sent.answer.as_ref().is_ok_and(is_right))
        };
        let outcomes = || {
            let answers = all.iter().filter_map(|sent| sent.answer.as_ref().ok());
            answers.filter_map(|answer| answer.outcome.as_deref())
        };
        let count = |outcome| outcomes().filter(|other| *other == outcome).count();
        match self {
            Self::Once => {
                every(Answer::is_success)
                    && count("processed") <= 1
                    && count("processed") + count("duplicate") == outcomes().count()
            }
            Self::EachForItself => every(Answer::is_success) && count("duplicate") == 0,
            Self::Refused => every(|answer| answer.status == 401),
        }
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Once => "every answer 2xx, at most one of them processed and the rest duplicate",
            Self::EachForItself => "every answer 2xx, none of them duplicate",
            Self::Refused => "every answer 401",
        })
    }
}
