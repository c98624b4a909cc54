//! What must hold for each history, whatever has happened in it.

use std::fmt;

use super::{End, Event, History, Line};
use crate::application::{REPROCESS, RETRIES, keeps_first};
use crate::sender::Attempt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// A delivery has at most one effect, and one more for each time that it is reprocessed.
    OneEffect,
    /// A claim and its effect are committed together, or neither of them is.
    OneTransaction,
    /// What an answer says was committed before the answer was received.
    TrueAnswer,
    /// Where all deliveries are kept, no handler is called before its delivery is kept.
    KeptFirst,
    /// What is kept, reprocessed, or missing from a provider's list ends: processed, dead or discarded. At the
    /// end nothing is due.
    Ended,
    /// Nothing runs before it was sent, or more often than requests and the schedule have it.
    Caused,
}

/// A delivery that breaks a rule.
#[derive(Clone, Debug)]
pub struct Violation {
    pub rule: Rule,
    pub id: String,
    what: String,
    lines: Vec<Line>,
}

/// For each rule, what of a delivery breaks it.
type Breaks = fn(&Facts<'_>) -> Option<String>;

const RULES: [(Rule, Breaks); 6] = [
    (Rule::OneEffect, more_effects),
    (Rule::OneTransaction, torn_transaction),
    (Rule::TrueAnswer, untrue_answer),
    (Rule::KeptFirst, called_before_kept),
    (Rule::Ended, no_end),
    (Rule::Caused, no_cause),
];

/// Returns which deliveries break which rules, by their ids.
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

/// What has happened to one delivery, with the times.
#[derive(Default)]
struct Facts<'a> {
    sent: Vec<u64>,
    paths: Vec<&'a str>,
    /// The requests that order it to be reprocessed.
    orders: Vec<u64>,
    answered: Vec<(u64, u64, &'a Attempt)>,
    missing: Vec<u64>,
    begun: Vec<u64>,
    claimed: Vec<u64>,
    committed: Vec<u64>,
    kept: Vec<u64>,
    reprocessed: Vec<u64>,
    end: Option<End>,
}

impl<'a> Facts<'a> {
    fn of(lines: &[&'a Line]) -> Self {
        let mut facts = Self::default();
        for line in lines {
            match &line.event {
                Event::Sent { request, path, .. } if path.starts_with(REPROCESS) => {
                    facts.orders.push(*request);
                }
                Event::Sent { path, .. } => {
                    facts.sent.push(line.at);
                    facts.paths.push(path);
                }
                Event::Answered { request, attempt } => {
                    facts.answered.push((line.at, *request, attempt));
                }
                Event::Missing => facts.missing.push(line.at),
                Event::Begun { .. } => facts.begun.push(line.at),
                Event::Claimed => facts.claimed.push(line.at),
                Event::Committed => facts.committed.push(line.at),
                Event::Kept => facts.kept.push(line.at),
                Event::Reprocessed => facts.reprocessed.push(line.at),
                Event::Ended(end) => facts.end = Some(*end),
            }
        }
        facts
    }
}

fn more_effects(facts: &Facts<'_>) -> Option<String> {
    let (effects, most) = (facts.committed.len(), 1 + facts.reprocessed.len());
    (effects > most).then(|| format!("{effects} effects, not {most}"))
}

fn torn_transaction(facts: &Facts<'_>) -> Option<String> {
    let mut claims = facts.claimed.iter();
    if !claims.all(|at| facts.committed.contains(at)) {
        return Some("a claim without its effect".into());
    }
    // The claim goes when the delivery is reprocessed.
    let since = facts.reprocessed.last().copied().unwrap_or_default();
    let mut effects = facts.committed.iter().filter(|at| **at > since);
    let is_claimed = effects.all(|at| facts.claimed.contains(at));
    (!is_claimed).then(|| "an effect without its claim".into())
}

fn untrue_answer(facts: &Facts<'_>) -> Option<String> {
    facts.answered.iter().find_map(|(at, request, attempt)| {
        let (promised, what) = match attempt.outcome() {
            "kept" | "accepted" => (&facts.kept, "kept"),
            "ignored" => return None,
            _ if !attempt.is_acknowledged() => return None,
            _ if facts.orders.contains(request) => (&facts.reprocessed, "due again"),
            _ => (&facts.committed, "committed"),
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
    if !is_kept && facts.missing.is_empty() {
        return None;
    }
    let is_given_up = matches!(facts.end, Some(End::Dead | End::Discarded));
    let (effects, promised) = (facts.committed.len(), 1 + facts.reprocessed.len());
    let what = match facts.end {
        None if is_kept => "what has become of it is not known",
        Some(End::Due) => "due for ever",
        _ if is_given_up && effects >= promised => "given up although it was processed",
        _ if effects + usize::from(is_given_up) < promised => "lost",
        _ => return None,
    };
    Some(what.into())
}

fn no_cause(facts: &Facts<'_>) -> Option<String> {
    let cause = facts.sent.iter().chain(&facts.missing).min();
    let run = [&facts.begun, &facts.claimed, &facts.committed];
    let run = run.into_iter().flatten().min()?;
    if cause.is_none_or(|cause| cause > run) {
        return Some("it ran before it was sent".into());
    }
    // One attempt more than the schedule has, if the last one has not ended.
    let schedules = facts.kept.len() + facts.reprocessed.len();
    let most = facts.sent.len() + schedules * (RETRIES + 1);
    let begun = facts.begun.len();
    (begun > most).then(|| format!("called {begun} times, not {most}"))
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?}: {}: {}", self.rule, self.id, self.what)?;
        let mut lines = self.lines.iter();
        lines.try_for_each(|line| writeln!(f, "    {line}"))
    }
}
