//! What is said at the end.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::arguments::Plan;
use crate::sending::{Answer, Sent};

pub struct Report<'a> {
    plan: &'a Plan,
    all: &'a [Sent],
}

const NONE: &str = "-";

impl<'a> Report<'a> {
    pub fn new(plan: &'a Plan, all: &'a [Sent]) -> Self {
        Self { plan, all }
    }

    pub fn is_as_expected(&self) -> bool {
        self.plan.expectation.is_met(self.all)
    }

    fn answers(&self) -> impl Iterator<Item = &Answer> {
        self.all.iter().filter_map(|sent| sent.answer.as_ref().ok())
    }

    /// What was sent, how often and where to. Not what may be secret in the URL.
    fn heading(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan {
            url,
            message,
            times,
            concurrency,
            ..
        } = self.plan;
        let origin = url.origin().ascii_serialization();
        let often = match (times, concurrency.min(times)) {
            (1, _) => "once".to_owned(),
            (_, 1) => format!("{times} times, one after another"),
            (_, together) => format!("{times} times, {together} at once"),
        };
        let path = url.path();
        writeln!(f, "{message}, {often}, to {origin}{path}\n")
    }

    fn table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcomes = self.answers().map(outcome);
        let width = outcomes.map(str::len).max().unwrap_or(0).max(7);
        writeln!(
            f,
            "{:>6}  status  {:width$}  {:>9}",
            "number", "outcome", "ms"
        )?;
        for sent in self.all {
            let number = sent.number;
            match &sent.answer {
                Ok(answer) => writeln!(
                    f,
                    "{number:>6}  {:>6}  {:width$}  {:>9.1}",
                    answer.status,
                    outcome(answer),
                    millis(answer.took),
                )?,
                Err(none) => writeln!(f, "{number:>6}  {NONE:>6}  no answer: {}", none.reason)?,
            }
        }
        Ok(())
    }

    fn counts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut statuses = BTreeMap::new();
        let mut outcomes = BTreeMap::new();
        for answer in self.answers() {
            *statuses.entry(answer.status.to_string()).or_insert(0) += 1;
            *outcomes.entry(outcome(answer)).or_insert(0) += 1;
        }
        let unanswered = self.all.len() - self.answers().count();
        if unanswered > 0 {
            statuses.insert("no answer".to_owned(), unanswered);
        }
        writeln!(f, "\nby status:  {}", listed(&statuses))?;
        if self.says_outcomes() {
            writeln!(f, "by outcome: {}", listed(&outcomes))?;
        }
        Ok(())
    }

    /// Whether the duplicates were faster, if there is something to compare.
    fn medians(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = |outcome| {
            self.answers()
                .filter(move |answer| answer.outcome.as_deref() == Some(outcome))
                .map(|answer| answer.took)
                .collect()
        };
        let (Some(processed), Some(duplicate)) =
            (median(times("processed")), median(times("duplicate")))
        else {
            return Ok(());
        };
        let ratio = processed.as_secs_f64() / duplicate.as_secs_f64();
        writeln!(
            f,
            "median ms:  processed {:.1}, duplicate {:.1}: duplicates {ratio:.1} times as fast{}",
            millis(processed),
            millis(duplicate),
            match self.plan.concurrency {
                1 => "",
                _ => " (those sent beside the first wait for it)",
            }
        )
    }

    fn verdict(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let expectation = self.plan.expectation;
        if !self.says_outcomes() {
            writeln!(
                f,
                "\nNo answer has x-webhook-outcome: the endpoint is not behind idempotent-webhook, \
                 and is judged by the status alone."
            )?;
        }
        let is_as_expected = self.is_as_expected();
        if !is_as_expected && self.answers().any(|answer| answer.status == 401) {
            writeln!(
                f,
                "\nA 401 says that the endpoint has another secret or another provider, or that a \
                 captured signature has expired."
            )?;
        }
        match is_as_expected {
            true => writeln!(f, "\nAs expected: {expectation}."),
            false => writeln!(f, "\nNot as expected, which is: {expectation}."),
        }
    }

    fn says_outcomes(&self) -> bool {
        self.answers().any(|answer| answer.outcome.is_some())
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.heading(f)?;
        self.table(f)?;
        self.counts(f)?;
        self.medians(f)?;
        self.verdict(f)
    }
}

fn outcome(answer: &Answer) -> &str {
    answer.outcome.as_deref().unwrap_or(NONE)
}

fn listed(counts: &BTreeMap<impl fmt::Display, usize>) -> String {
    let counts = counts
        .iter()
        .map(|(what, count)| format!("{what}: {count}"));
    counts.collect::<Vec<_>>().join(", ")
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// Of an even number, the mean of the two in the middle.
fn median(mut times: Vec<Duration>) -> Option<Duration> {
    times.sort_unstable();
    let upper = times.get(times.len() / 2)?;
    let lower = times.get(times.len().saturating_sub(1) / 2)?;
    Some((*lower + *upper) / 2)
}
