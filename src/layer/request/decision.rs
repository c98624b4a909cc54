//! The decision after an attempt: its outcome, and who answers the sender. The answer, the log, the metrics, recovery
//! and the waiting duplicates all follow this decision.

use crate::metrics::outcome::Outcome;

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// The attempt has committed the delivery. If the delivery was kept, the same commit has deleted its row or marked
    /// it as processed.
    Processed,
    /// Another attempt had already committed the delivery.
    Duplicate,
    /// Another delivery with the same event type and body had already been committed.
    Replayed,
    /// Another attempt at the delivery, or at another delivery of its object, was still running.
    InFlight,
    /// The attempt has failed, before or after its handler was called.
    Failed,
}

/// What was recorded about an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// Nothing is kept, as far as is known.
    NotKept,
    /// This attempt has kept the delivery.
    Kept,
    /// The delivery was kept before, and is still kept.
    StillKept,
    /// The delivery was kept before. Postgres has not answered whether it is still kept.
    Unknown,
    /// An operator has discarded the delivery during the attempt.
    Discarded,
    /// Another attempt has committed the delivery meanwhile.
    Committed,
}

/// The decision after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) outcome: Outcome,
    pub(super) answers: Answers,
}

/// Who answers the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answers {
    /// The attempt: the response of the handler, or the layer's own response to a failure.
    Attempt,
    /// The layer, with an empty success.
    Acknowledgement,
}

/// Makes the decision after an attempt. `acknowledges` says whether the sender gets a 2xx if the attempt has failed and
/// the delivery is kept. It is `false` if there is no sender.
pub(super) fn decide(how: How, written: Written, acknowledges: bool) -> Decision {
    use Answers::{Acknowledgement, Attempt};

    let (outcome, answers) = match (how, written) {
        (How::Processed, _) => (Outcome::Processed, Attempt),
        (How::Duplicate | How::Replayed, _) | (_, Written::Committed) => {
            (Outcome::Duplicate, Acknowledgement)
        }
        (_, Written::Discarded) if acknowledges => (Outcome::Discarded, Acknowledgement),
        (_, Written::Kept) | (How::Failed, Written::StillKept) => match acknowledges {
            true => (Outcome::Kept, Acknowledgement),
            false => (Outcome::Kept, Attempt),
        },
        // A delivery that may no longer be kept gets no 2xx.
        (How::Failed, Written::Unknown) if !acknowledges => (Outcome::Kept, Attempt),
        (How::InFlight, _) => (Outcome::InFlight, Attempt),
        (How::Failed, _) => (Outcome::Failed, Attempt),
    };
    Decision { outcome, answers }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::Answers::{Acknowledgement, Attempt};
    use super::*;

    const PROCESSED: Decision = attempt(Outcome::Processed);
    const IN_FLIGHT: Decision = attempt(Outcome::InFlight);
    const FAILED: Decision = attempt(Outcome::Failed);
    const KEPT: Decision = attempt(Outcome::Kept);
    const DUPLICATE: Decision = acknowledged(Outcome::Duplicate);
    const DISCARDED: Decision = acknowledged(Outcome::Discarded);
    const KEPT_200: Decision = acknowledged(Outcome::Kept);

    const fn attempt(outcome: Outcome) -> Decision {
        Decision {
            outcome,
            answers: Attempt,
        }
    }

    const fn acknowledged(outcome: Outcome) -> Decision {
        Decision {
            outcome,
            answers: Acknowledgement,
        }
    }

    /// Each combination of `How` and `Written`, with the decision if the sender sees failures, and the decision with
    /// `Keep::acknowledge`. After `Processed`, `Duplicate` and `Replayed`, the value of `Written` does not matter.
    const TABLE: [(How, Written, Decision, Decision); 15] = {
        use How::*;
        use Written::*;
        [
            (Processed, NotKept, PROCESSED, PROCESSED),
            (Duplicate, NotKept, DUPLICATE, DUPLICATE),
            (Replayed, NotKept, DUPLICATE, DUPLICATE),
            (InFlight, NotKept, IN_FLIGHT, IN_FLIGHT),
            (InFlight, Kept, KEPT, KEPT_200),
            (InFlight, StillKept, IN_FLIGHT, IN_FLIGHT),
            (InFlight, Unknown, IN_FLIGHT, IN_FLIGHT),
            (InFlight, Discarded, IN_FLIGHT, DISCARDED),
            (InFlight, Committed, DUPLICATE, DUPLICATE),
            (Failed, NotKept, FAILED, FAILED),
            (Failed, Kept, KEPT, KEPT_200),
            (Failed, StillKept, KEPT, KEPT_200),
            (Failed, Unknown, KEPT, FAILED),
            (Failed, Discarded, FAILED, DISCARDED),
            (Failed, Committed, DUPLICATE, DUPLICATE),
        ]
    };

    #[test]
    fn handle_3_an_attempt_comes_to_what_the_table_says() {
        for (how, written, told, acknowledged) in TABLE {
            assert_eq!(decide(how, written, false), told, "{how:?}, {written:?}");
            assert_eq!(
                decide(how, written, true),
                acknowledged,
                "{how:?}, {written:?}, acknowledged"
            );
        }
    }

    /// Guarantee R14: the layer answers a failure with a 2xx only if the delivery is known to be kept.
    #[test]
    fn r14_no_failure_is_acknowledged_without_a_reason() {
        for (how, written, ..) in TABLE {
            for acknowledges in [false, true] {
                let decision = decide(how, written, acknowledges);
                let is_failure = matches!(how, How::Failed | How::InFlight);
                if is_failure && decision.answers == Acknowledgement {
                    let is_safe = written == Written::Committed
                        || acknowledges
                            && matches!(
                                written,
                                Written::Kept | Written::StillKept | Written::Discarded
                            );
                    assert!(is_safe, "{how:?}, {written:?}, {acknowledges}");
                }
            }
        }
    }

    /// The page lists the statuses of each outcome of an attempt.
    #[test]
    fn handle_3_the_page_of_answers_has_each_decision_and_no_other() {
        let decided: BTreeSet<(&str, &str)> = TABLE
            .into_iter()
            .flat_map(|(_, _, told, acknowledged)| [told, acknowledged])
            .map(|Decision { outcome, answers }| {
                let status = match (answers, outcome) {
                    (Acknowledgement, _) => "200, empty",
                    (Attempt, Outcome::Processed) => "2xx",
                    (Attempt, _) => "a failure",
                };
                (status, outcome.as_str())
            })
            .collect();
        let of_attempts: BTreeSet<&str> = decided.iter().map(|(_, outcome)| *outcome).collect();
        let on_page: BTreeSet<(&str, &str)> = rows_of_page()
            .filter(|(_, outcome)| of_attempts.contains(outcome))
            .collect();
        assert_eq!(on_page, decided);
    }

    /// The kind of status and the outcome in each row of the page's table.
    fn rows_of_page() -> impl Iterator<Item = (&'static str, &'static str)> {
        const PAGE: &str = include_str!("../../documentation/answers.md");

        PAGE.lines()
            .skip_while(|line| !line.starts_with("| status | outcome |"))
            .skip(2)
            .take_while(|line| line.starts_with('|'))
            .flat_map(|line| {
                let mut cells = line.split('|').skip(1).map(str::trim);
                let (status, outcomes) = (cells.next(), cells.next());
                let status = match status.unwrap_or_default() {
                    status @ ("2xx" | "200, empty") => status,
                    _ => "a failure",
                };
                let outcomes = outcomes.unwrap_or_default().split(", ");
                outcomes.map(move |outcome| (status, outcome.trim_matches('`')))
            })
    }
}
