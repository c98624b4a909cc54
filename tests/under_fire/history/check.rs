//! The rules that must hold for each history, regardless of what has happened in it.

use std::fmt;
use std::time::Duration;

use super::{End, Event, History, Line};
use crate::application::{RETRIES, WINDOW, keeps_first};
use crate::operator::Order;
use crate::sender::Attempt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// A delivery has at most one effect, and one more for each time that it is reprocessed.
    OneEffect,
    /// A claim and its effect are committed together, or not at all.
    OneTransaction,
    /// An answer says only what was committed before the answer was received. A process that ignores a delivery does
    /// not call its handler.
    TrueAnswer,
    /// On a route that keeps all deliveries, no handler is called before its delivery is kept.
    KeptFirst,
    /// Each delivery that is kept, rescheduled, reprocessed, or missing from a provider's list ends as processed, dead
    /// or discarded. At the end of the run, nothing is due.
    Ended,
    /// An acknowledged delivery never ends without the effect of its handler, unless it was dead or an operator has
    /// discarded it. An answer to an ignored delivery does not count as an acknowledgement.
    Handled,
    /// No delivery runs before it was sent, or more often than the requests and the schedule allow. Nothing is
    /// discarded or reprocessed without an order.
    Caused,
    /// No claim is deleted while the provider may send the delivery again.
    Remembered,
}

/// A delivery that breaks a rule.
#[derive(Clone, Debug)]
pub struct Violation {
    pub rule: Rule,
    pub id: String,
    what: String,
    lines: Vec<Line>,
}

/// Returns how a delivery breaks a rule. `None` if it does not break the rule.
type Breaks = fn(&Facts<'_>) -> Option<String>;

const RULES: [(Rule, Breaks); 8] = [
    (Rule::OneEffect, more_effects),
    (Rule::OneTransaction, torn_transaction),
    (Rule::TrueAnswer, untrue_answer),
    (Rule::KeptFirst, called_before_kept),
    (Rule::Ended, no_end),
    (Rule::Handled, ended_without_handler),
    (Rule::Caused, no_cause),
    (Rule::Remembered, forgotten),
];

/// Returns the ids of the deliveries that break rules, and the rules that they break.
pub fn check(history: &History) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (id, lines) in history.deliveries() {
        let facts = Facts::of(&lines);
        for (rule, breaks) in RULES {
            violations.extend(breaks(&facts).map(|what| Violation {
                rule,
                id: id.to_owned(),
                what,
                lines: lines.iter().copied().cloned().collect(),
            }));
        }
    }
    violations
}

/// What has happened to one delivery, and when.
#[derive(Default)]
struct Facts<'a> {
    sent: Vec<u64>,
    /// The processes to which requests were sent.
    asked: Vec<(u64, &'a str)>,
    paths: Vec<&'a str>,
    /// Orders of operators, with the numbers of their requests.
    orders: Vec<(u64, Order)>,
    answered: Vec<(u64, u64, &'a Attempt)>,
    missing: Vec<u64>,
    begun: Vec<u64>,
    /// The processes that have called the handler of the delivery.
    callers: Vec<&'a str>,
    claimed: Vec<u64>,
    committed: Vec<u64>,
    kept: Vec<u64>,
    reprocessed: Vec<u64>,
    rescheduled: Vec<u64>,
    discarded: Vec<u64>,
    claim_pruned: Vec<u64>,
    dead_pruned: Vec<u64>,
    end: Option<End>,
}

impl<'a> Facts<'a> {
    fn of(lines: &[&'a Line]) -> Self {
        let mut facts = Self::default();
        for line in lines {
            match &line.event {
                Event::Sent {
                    request,
                    process,
                    path,
                } => match Order::at(path) {
                    Some(order) => facts.orders.push((*request, order)),
                    None => {
                        facts.sent.push(line.at);
                        facts.asked.push((*request, process));
                        facts.paths.push(path);
                    }
                },
                Event::Answered { request, attempt } => {
                    facts.answered.push((line.at, *request, attempt));
                }
                Event::Missing => facts.missing.push(line.at),
                Event::Begun { process } => {
                    facts.begun.push(line.at);
                    facts.callers.push(process);
                }
                Event::Claimed => facts.claimed.push(line.at),
                Event::Committed => facts.committed.push(line.at),
                Event::Kept => facts.kept.push(line.at),
                Event::Reprocessed => facts.reprocessed.push(line.at),
                Event::Rescheduled => facts.rescheduled.push(line.at),
                Event::Discarded => facts.discarded.push(line.at),
                Event::ClaimPruned => facts.claim_pruned.push(line.at),
                Event::DeadPruned => facts.dead_pruned.push(line.at),
                Event::Ended(end) => facts.end = Some(*end),
            }
        }
        facts
    }

    /// How many effects the delivery has up to each reprocess, and after the last one.
    fn effects(&self) -> (Vec<usize>, usize) {
        let mut before = 0;
        let until = |at: u64| self.committed.iter().filter(|effect| **effect < at).count();
        let effects = self.reprocessed.iter().map(|at| {
            let effects = until(*at) - before;
            before += effects;
            effects
        });
        let effects = effects.collect();
        (effects, self.committed.len() - before)
    }

    fn ordered(&self, order: Order) -> usize {
        let orders = self.orders.iter();
        orders.filter(|(_, given)| *given == order).count()
    }

    /// Whether the process that got this request has called the handler.
    fn is_called_where_sent(&self, request: u64) -> bool {
        let mut asked = self.asked.iter();
        asked.any(|(number, process)| *number == request && self.callers.contains(process))
    }

    fn ordered_by(&self, request: u64) -> Option<Order> {
        let mut orders = self.orders.iter();
        let (_, order) = orders.find(|(number, _)| *number == request)?;
        Some(*order)
    }
}

fn more_effects(facts: &Facts<'_>) -> Option<String> {
    let (mut effects, last) = facts.effects();
    effects.push(last);
    let most = effects.into_iter().max()?;
    (most > 1).then(|| format!("{most} effects"))
}

fn torn_transaction(facts: &Facts<'_>) -> Option<String> {
    let all = |times: &[u64], others: &[u64]| times.iter().all(|at| others.contains(at));
    if !all(&facts.claimed, &facts.committed) {
        return Some("a claim without its effect".into());
    }
    let is_claimed = all(&facts.committed, &facts.claimed);
    (!is_claimed).then(|| "an effect without its claim".into())
}

fn untrue_answer(facts: &Facts<'_>) -> Option<String> {
    facts.answered.iter().find_map(|(at, request, attempt)| {
        let order = facts.ordered_by(*request);
        let (promised, what) = match (order, attempt.outcome()) {
            (None, "kept" | "accepted") => (&facts.kept, "kept"),
            (None, "ignored") if !facts.is_called_where_sent(*request) => return None,
            (None, "ignored") => return Some("called, although it was ignored".into()),
            _ if !attempt.is_acknowledged() => return None,
            (None, _) => (&facts.committed, "committed"),
            (Some(Order::Reprocess), _) => (&facts.reprocessed, "due again"),
            (Some(Order::Retry), _) => (&facts.rescheduled, "due again"),
            (Some(Order::Discard), _) => (&facts.discarded, "discarded"),
            (Some(Order::Pause | Order::Resume), _) => return None,
        };
        let is_true = promised.iter().any(|promised| promised <= at);
        (!is_true).then(|| format!("not {what} when #{request} was answered {attempt}"))
    })
}

fn called_before_kept(facts: &Facts<'_>) -> Option<String> {
    let keeps = facts.paths.iter().any(|path| keeps_first(path));
    let (begun, kept) = (facts.begun.first()?, facts.kept.first());
    let is_early = keeps && kept.is_none_or(|kept| kept > begun);
    is_early.then(|| "called before it was kept".into())
}

fn no_end(facts: &Facts<'_>) -> Option<String> {
    let is_kept = !facts.kept.is_empty();
    let (before, effects) = facts.effects();
    if before.contains(&0) {
        return Some("reprocessed although it was not processed".into());
    }
    let duties = [&facts.kept, &facts.missing, &facts.rescheduled];
    let duties = duties.into_iter().chain([&facts.reprocessed]).flatten();
    let duty = duties.max()?;
    let mut given_up = facts.discarded.iter().chain(&facts.dead_pruned);
    let is_dead = facts.end == Some(End::Dead);
    let what = match facts.end {
        None if is_kept => "its end is not known",
        Some(End::Due) => "due forever",
        _ if is_dead && effects > 0 => "dead although it was processed",
        _ if effects > 0 || is_dead || given_up.any(|at| at >= duty) => return None,
        _ => "lost",
    };
    Some(what.into())
}

fn ended_without_handler(facts: &Facts<'_>) -> Option<String> {
    let mut answered = facts.answered.iter();
    let is_acknowledged = answered.any(|(_, request, attempt)| {
        facts.ordered_by(*request).is_none()
            && attempt.is_acknowledged()
            && attempt.outcome() != "ignored"
    });
    if !is_acknowledged {
        return None;
    }
    let mut claimed = facts.claimed.iter();
    if claimed.any(|at| !facts.committed.contains(at)) {
        return Some("acknowledged, and claimed without its handler".into());
    }
    let is_given_up = !facts.discarded.is_empty() || !facts.dead_pruned.is_empty();
    let is_gone = matches!(facts.end, Some(End::Nothing | End::Processed));
    let is_lost = is_gone && facts.committed.is_empty() && !is_given_up;
    is_lost.then(|| "acknowledged, and ended without its handler".into())
}

fn no_cause(facts: &Facts<'_>) -> Option<String> {
    for (order, times) in [
        (Order::Discard, &facts.discarded),
        (Order::Reprocess, &facts.reprocessed),
    ] {
        let (orders, times) = (facts.ordered(order), times.len());
        if times > orders {
            let name = order.name();
            return Some(format!(
                "{times} times done what {orders} orders to {name} say"
            ));
        }
    }
    let cause = facts.sent.iter().chain(&facts.missing).min();
    let run = [&facts.begun, &facts.claimed, &facts.committed];
    let run = run.into_iter().flatten().min()?;
    if cause.is_none_or(|cause| cause > run) {
        return Some("it ran before it was sent".into());
    }
    // Allows one attempt more than the schedule, because the last attempt may not have finished.
    let schedules = facts.kept.len() + facts.reprocessed.len() + facts.rescheduled.len();
    let most = facts.sent.len() + schedules * (RETRIES + 1);
    let begun = facts.begun.len();
    (begun > most).then(|| format!("called {begun} times, not {most}"))
}

fn forgotten(facts: &Facts<'_>) -> Option<String> {
    let (pruned, first) = (facts.claim_pruned.first()?, facts.sent.first()?);
    let age = Duration::from_micros(pruned.saturating_sub(*first));
    (age < WINDOW).then(|| format!("its claim was deleted {age:?} after it was sent first"))
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?}: {}: {}", self.rule, self.id, self.what)?;
        let mut lines = self.lines.iter();
        lines.try_for_each(|line| writeln!(f, "    {line}"))
    }
}
