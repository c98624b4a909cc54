//! The numbers under which this process takes deliveries.

use std::sync::Arc;

use tokio::time::Instant;

use super::TERM;
use crate::tasks_and_errors::random::random;

/// A number under which deliveries are taken. An attempt holds it until its result is recorded.
#[derive(Clone, Debug)]
pub(crate) struct Taker(Arc<i64>);

impl Taker {
    fn new() -> Self {
        Self(Arc::new(random().cast_signed()))
    }

    pub(crate) fn number(&self) -> i64 {
        *self.0
    }

    /// Whether an attempt holds the number. No new attempt gets a number that is draining.
    fn is_held(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}

/// The numbers of this process, by their phase on the time line in `liveness/mod.rs`.
pub(super) struct Numbers {
    in_use: Taker,
    in_use_since: Instant,
    announced: Taker,
    /// The number that the next heartbeat announces. It stays here until the heartbeat is answered: a number that
    /// was announced and then forgotten would look like a number of a dead process.
    next: Option<Taker>,
    draining: Vec<Taker>,
    /// Whether this process takes deliveries. If not, it announces no numbers.
    is_taking: bool,
    /// Whether `in_use` and `announced` are in `processes`.
    are_written: bool,
    /// How many heartbeats this process has tried to send. So if a number was deleted and is written again, it gets a
    /// heartbeat that it never had before.
    heartbeats: i64,
}

/// The content of a heartbeat.
pub(super) struct Message {
    pub(super) heartbeat: i64,
    pub(super) numbers: Vec<i64>,
    pub(super) given_up: Vec<i64>,
}

impl Default for Numbers {
    fn default() -> Self {
        Self {
            in_use: Taker::new(),
            in_use_since: Instant::now(),
            announced: Taker::new(),
            next: None,
            draining: Vec::new(),
            is_taking: false,
            are_written: false,
            heartbeats: 0,
        }
    }
}

impl Numbers {
    /// From now on, this process takes deliveries.
    pub(super) fn start(&mut self) {
        self.is_taking = true;
    }

    /// The number for deliveries that are taken now, once the number is in `processes`.
    pub(super) fn in_use(&self) -> Option<Taker> {
        self.are_written.then(|| self.in_use.clone())
    }

    /// Whether no further heartbeat is needed.
    pub(super) fn is_over(&self) -> bool {
        !self.is_taking && self.draining.is_empty()
    }

    pub(super) fn message(&mut self) -> Message {
        let (held, given_up): (Vec<_>, Vec<_>) =
            self.draining.iter().partition(|taker| taker.is_held());
        let mut beating = held;
        if self.is_taking {
            if self.in_use_since.elapsed() >= TERM {
                self.next.get_or_insert_with(Taker::new);
            }
            beating.extend([&self.in_use, &self.announced]);
            beating.extend(&self.next);
        }
        self.heartbeats += 1;
        Message {
            heartbeat: self.heartbeats,
            numbers: beating.into_iter().map(Taker::number).collect(),
            given_up: given_up.into_iter().map(Taker::number).collect(),
        }
    }

    /// Notes that the last message is written.
    pub(super) fn note_written(&mut self, message: &Message) {
        self.are_written = message.numbers.contains(&self.in_use.number());
        self.draining
            .retain(|taker| !message.given_up.contains(&taker.number()));
        if let Some(next) = self.next.take() {
            self.rotate(next);
        }
    }

    /// Puts the announced number to use. From now on, `next` is the announced number.
    fn rotate(&mut self, next: Taker) {
        let announced = std::mem::replace(&mut self.announced, next);
        let in_use = std::mem::replace(&mut self.in_use, announced);
        self.draining.push(in_use);
        self.in_use_since = Instant::now();
    }

    /// Stops taking deliveries. Returns whether there is a number to give up.
    pub(super) fn leave(&mut self) -> bool {
        if std::mem::replace(&mut self.is_taking, false) {
            self.are_written = false;
            self.draining.extend(self.next.take());
            // After these two rotations, both numbers are draining.
            self.rotate(Taker::new());
            self.rotate(Taker::new());
        }
        self.draining.iter().any(|taker| !taker.is_held())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taking() -> Numbers {
        let mut numbers = Numbers::default();
        numbers.start();
        numbers
    }

    /// A heartbeat whose write succeeds.
    fn beat(numbers: &mut Numbers) -> Message {
        let message = numbers.message();
        numbers.note_written(&message);
        message
    }

    #[tokio::test(start_paused = true)]
    async fn a_number_is_given_up_once_no_attempt_holds_it() {
        let mut numbers = taking();
        let held = numbers.in_use.clone();
        for _ in 0..3 {
            tokio::time::advance(TERM).await;
            let message = beat(&mut numbers);
            assert!(message.numbers.contains(&held.number()));
            assert!(!message.given_up.contains(&held.number()));
        }
        let number = held.number();
        drop(held);
        let message = beat(&mut numbers);
        assert!(!message.numbers.contains(&number));
        assert!(message.given_up.contains(&number));
        assert!(!numbers.message().given_up.contains(&number));
    }

    #[tokio::test(start_paused = true)]
    async fn a_number_whose_announcement_is_not_answered_is_announced_again() {
        let mut numbers = taking();
        beat(&mut numbers);
        tokio::time::advance(TERM).await;
        let lost = numbers.message();
        let again = beat(&mut numbers);
        assert_eq!(lost.numbers.len(), 3);
        assert_eq!(again.numbers, lost.numbers);
        assert_eq!(numbers.message().numbers.len(), 2);

        tokio::time::advance(TERM).await;
        let lost = numbers.message();
        let mut lost = [lost.numbers, lost.given_up].concat();
        assert!(numbers.leave());
        let mut given_up = numbers.message().given_up;
        lost.sort_unstable();
        given_up.sort_unstable();
        assert_eq!(given_up, lost);
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_that_leaves_gives_up_what_no_attempt_holds() {
        let mut numbers = taking();
        beat(&mut numbers);
        assert!(numbers.in_use().is_some());
        let held = numbers.in_use.clone();
        let announced = numbers.announced.number();
        assert!(numbers.leave());
        assert!(numbers.in_use().is_none());
        numbers.is_taking = true;
        assert!(numbers.in_use().is_none(), "it was not announced");
        numbers.is_taking = false;
        let message = beat(&mut numbers);
        assert_eq!(message.numbers, [held.number()]);
        assert_eq!(message.given_up, [announced]);
        assert!(!numbers.leave());
    }
}
