//! A failed attempt at a delivery, and what comes next.

use std::fmt;
use std::time::Duration;

use http::StatusCode;

use super::schedule::{MAX_DELAY, Schedule};
use crate::tasks_and_errors::handler_error::Next;

/// The longest recorded reason, in characters.
const MAX_REASON: usize = 1000;

/// A failed attempt at a delivery.
#[derive(Clone, Debug)]
pub(crate) struct FailedAttempt {
    status: StatusCode,
    reason: String,
    next: Next,
    opens_breaker: bool,
    has_begun: bool,
}

impl FailedAttempt {
    pub(crate) fn new(status: StatusCode, reason: impl fmt::Display, next: Next) -> Self {
        Self {
            status,
            // Postgres cannot store NUL, and a panic message may have one.
            reason: reason
                .to_string()
                .chars()
                .filter(|c| *c != '\0')
                .take(MAX_REASON)
                .collect(),
            next,
            opens_breaker: true,
            has_begun: true,
        }
    }

    /// Marks a failure that the handler has not caused. Such a failure does not open the breaker, so the other
    /// deliveries of the endpoint go on.
    pub(crate) fn without_breaker(self) -> Self {
        Self {
            opens_breaker: false,
            ..self
        }
    }

    /// Marks a failure that occurred before the handler was called. Such a failure uses up no attempt of the schedule.
    /// If the delivery is not kept yet, it is kept now, so that it is not lost.
    pub(crate) fn not_begun(self) -> Self {
        Self {
            has_begun: false,
            ..self
        }
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    pub(super) fn opens_breaker(&self) -> bool {
        self.opens_breaker
    }

    pub(crate) fn is_discarded(&self) -> bool {
        self.next == Next::Discard
    }

    /// Whether the handler has decided what comes next.
    pub(super) fn says_what_is_next(&self) -> bool {
        self.next != Next::Scheduled
    }

    pub(crate) fn reason(&self) -> &str {
        &self.reason
    }

    // A status is at most 999, so it fits.
    pub(super) fn status(&self) -> i16 {
        self.status.as_u16().cast_signed()
    }

    /// The delay until the next attempt, after `retries` attempts of the schedule. `None` if the delivery is dead.
    pub(crate) fn delay(&self, schedule: &Schedule, retries: u32) -> Option<Duration> {
        let scheduled = schedule.delay_after(retries)?;
        match self.next {
            Next::Scheduled => Some(scheduled),
            Next::After(delay) => Some(delay.min(MAX_DELAY)),
            Next::Dead | Next::Discard => None,
        }
    }
}
