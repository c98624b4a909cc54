//! Puts faults into a correct history, one at a time, to check that each fault is found.

use super::check::{Rule, check};
use super::{End, Event, History, Line};
use crate::operator::Order;

struct Tampering {
    /// A rule that the fault breaks. The fault may break other rules, too.
    breaks: Rule,
    /// Puts the fault into the lines of a delivery. Returns whether that was possible.
    put_in: fn(&mut Vec<Line>) -> bool,
}

const TAMPERINGS: [Tampering; 18] = [
    Tampering {
        breaks: Rule::OneEffect,
        // An effect happens twice.
        put_in: double_the_effect,
    },
    Tampering {
        breaks: Rule::OneTransaction,
        // An effect is lost, but its claim is not.
        put_in: |lines| {
            has(lines, &Event::Claimed) && remove(lines, |event| *event == Event::Committed)
        },
    },
    Tampering {
        breaks: Rule::TrueAnswer,
        // An acknowledged effect is lost.
        put_in: |lines| lines.iter().any(says_processed) && lose_the_transaction(lines),
    },
    Tampering {
        breaks: Rule::TrueAnswer,
        // The delivery is acknowledged before the commit.
        put_in: |lines| answer_before_the_commit(lines),
    },
    Tampering {
        breaks: Rule::TrueAnswer,
        // The handler is called for an ignored delivery.
        put_in: |lines| {
            let ignored = lines.iter().find_map(|line| match &line.event {
                Event::Answered { request, attempt } if attempt.outcome() == "ignored" => {
                    Some(*request)
                }
                _ => None,
            });
            let called = lines.iter().find_map(|line| match &line.event {
                Event::Sent {
                    request, process, ..
                } if Some(*request) == ignored => {
                    let event = Event::Begun {
                        process: process.clone(),
                    };
                    Some(Line {
                        event,
                        ..line.clone()
                    })
                }
                _ => None,
            });
            let is_ignored = called.is_some();
            lines.extend(called);
            is_ignored
        },
    },
    Tampering {
        breaks: Rule::TrueAnswer,
        // The delivery was not retried.
        put_in: |lines| {
            is_done(lines, Order::Retry) && remove(lines, |event| *event == Event::Rescheduled)
        },
    },
    Tampering {
        breaks: Rule::TrueAnswer,
        // The delivery was not discarded.
        put_in: |lines| {
            is_done(lines, Order::Discard) && remove(lines, |event| *event == Event::Discarded)
        },
    },
    Tampering {
        breaks: Rule::TrueAnswer,
        // The delivery was not reprocessed.
        put_in: |lines| {
            is_done(lines, Order::Reprocess) && remove(lines, |event| *event == Event::Reprocessed)
        },
    },
    Tampering {
        breaks: Rule::KeptFirst,
        // The delivery is not kept before its handler is called.
        put_in: |lines| {
            is_called(lines)
                && is_sent_where_all_are_kept(lines)
                && remove(lines, |event| *event == Event::Kept)
        },
    },
    Tampering {
        breaks: Rule::Ended,
        // The delivery stays due.
        put_in: |lines| {
            let end = lines.iter_mut().find_map(|line| match &mut line.event {
                Event::Ended(end) => Some(end),
                _ => None,
            });
            end.is_some_and(|end| std::mem::replace(end, End::Due) != End::Due)
        },
    },
    Tampering {
        breaks: Rule::Ended,
        // A kept delivery is lost.
        put_in: |lines| {
            has(lines, &Event::Kept) && !is_given_up(lines) && lose_the_transaction(lines)
        },
    },
    Tampering {
        breaks: Rule::Ended,
        // The delivery is gone, but nobody has discarded it.
        put_in: |lines| {
            has(lines, &Event::Kept)
                && !has(lines, &Event::Committed)
                && !has(lines, &Event::DeadPruned)
                && !has(lines, &Event::Ended(End::Dead))
                && remove(lines, |event| *event == Event::Discarded)
        },
    },
    Tampering {
        breaks: Rule::Ended,
        // The delivery is gone, but it was not dead.
        put_in: |lines| {
            !has(lines, &Event::Committed)
                && !has(lines, &Event::Discarded)
                && remove(lines, |event| *event == Event::DeadPruned)
        },
    },
    Tampering {
        breaks: Rule::Ended,
        // The delivery was reprocessed, but did not run again.
        put_in: |lines| {
            let last = lines
                .iter()
                .rposition(|line| line.event == Event::Reprocessed);
            let Some(at) = last.map(|place| lines[place].at) else {
                return false;
            };
            let before = lines.len();
            lines.retain(|line| {
                line.at < at || !matches!(line.event, Event::Claimed | Event::Committed)
            });
            !is_given_up(lines) && lines.len() < before
        },
    },
    Tampering {
        breaks: Rule::Handled,
        // The delivery was acknowledged, and then ended by a process that has no handler for it.
        put_in: |lines| {
            lines.iter().any(says_processed)
                && has(lines, &Event::Claimed)
                && remove(lines, |event| *event == Event::Committed)
        },
    },
    Tampering {
        breaks: Rule::Caused,
        // Nobody has sent the delivery.
        put_in: |lines| {
            is_called(lines)
                && !has(lines, &Event::Missing)
                && remove(lines, |event| matches!(event, Event::Sent { .. }))
        },
    },
    Tampering {
        breaks: Rule::Caused,
        // Nobody has given the order.
        put_in: |lines| {
            (has(lines, &Event::Discarded) || has(lines, &Event::Reprocessed))
                && remove(
                    lines,
                    |event| matches!(event, Event::Sent { path, .. } if Order::at(path).is_some()),
                )
        },
    },
    Tampering {
        breaks: Rule::Remembered,
        // The claim is deleted before the provider gives up.
        put_in: |lines| {
            let sent = lines
                .iter()
                .find(|line| matches!(line.event, Event::Sent { .. }));
            let Some(at) = sent.map(|sent| sent.at) else {
                return false;
            };
            let pruned = lines
                .iter_mut()
                .find(|line| line.event == Event::ClaimPruned);
            pruned.map(|pruned| pruned.at = at + 19_000_000).is_some()
        },
    },
];

/// Panics if a fault is not found in the delivery that it was put into, or if anything else is found. Returns how many
/// faults there were.
pub fn assert_found(history: &History) -> usize {
    let mut found = 0;
    for Tampering { breaks, put_in } in TAMPERINGS {
        let deliveries = history.deliveries();
        let mut faulty: Vec<(&str, Vec<Line>)> = Vec::new();
        for (id, lines) in deliveries {
            let mut lines: Vec<Line> = lines.into_iter().cloned().collect();
            if put_in(&mut lines) {
                faulty.push((id, lines));
            }
        }
        // Not every fault fits a delivery of this history.
        let Some((id, lines)) = fastrand::choice(faulty) else {
            continue;
        };
        let others = history.0.iter().filter(|line| line.id != id);
        let violations = check(&History::new(others.cloned().chain(lines).collect()));
        let is_found = violations.iter().any(|violation| violation.rule == breaks);
        let is_alone = violations.iter().all(|violation| violation.id == id);
        assert!(
            is_found && is_alone,
            "{breaks:?} was broken in {id}: {violations:?}"
        );
        found += 1;
    }
    assert!(found > 0, "a history without a processed delivery");
    found
}

fn remove(lines: &mut Vec<Line>, remove: impl Fn(&Event) -> bool) -> bool {
    let before = lines.len();
    lines.retain(|line| !remove(&line.event));
    lines.len() < before
}

fn double_the_effect(lines: &mut Vec<Line>) -> bool {
    let effect = lines.iter().find(|line| line.event == Event::Committed);
    let effect = effect.cloned();
    lines.extend(effect.clone());
    effect.is_some()
}

fn lose_the_transaction(lines: &mut Vec<Line>) -> bool {
    remove(lines, |event| {
        matches!(event, Event::Claimed | Event::Committed)
    })
}

fn answer_before_the_commit(lines: &mut [Line]) -> bool {
    let effect = lines.iter().find(|line| line.event == Event::Committed);
    let Some(at) = effect.map(|effect| effect.at) else {
        return false;
    };
    let answer = lines.iter_mut().find(|line| says_processed(line));
    answer.map(|answer| answer.at = at - 1).is_some()
}

fn says_processed(line: &Line) -> bool {
    matches!(&line.event, Event::Answered { attempt, .. }
        if attempt.is_acknowledged() && matches!(attempt.outcome(), "processed" | "duplicate"))
}

/// Whether an order of this kind was given, and answered as carried out.
fn is_done(lines: &[Line], wanted: Order) -> bool {
    let is_done = |number: u64| {
        lines.iter().any(|line| {
            matches!(&line.event, Event::Answered { request, attempt }
                if *request == number && attempt.is_acknowledged())
        })
    };
    lines.iter().any(|line| {
        matches!(&line.event, Event::Sent { request, path, .. }
            if Order::at(path) == Some(wanted) && is_done(*request))
    })
}

/// Whether the delivery may have ended without being processed.
fn is_given_up(lines: &[Line]) -> bool {
    [Event::Discarded, Event::DeadPruned, Event::Ended(End::Dead)]
        .iter()
        .any(|event| has(lines, event))
}

fn is_called(lines: &[Line]) -> bool {
    lines
        .iter()
        .any(|line| matches!(line.event, Event::Begun { .. }))
}

fn is_sent_where_all_are_kept(lines: &[Line]) -> bool {
    lines.iter().any(|line| {
        matches!(&line.event, Event::Sent { path, .. } if crate::application::keeps_first(path))
    })
}

fn has(lines: &[Line], event: &Event) -> bool {
    lines.iter().any(|line| line.event == *event)
}
