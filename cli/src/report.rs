//! The report that is shown after sending.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use crate::message::Message;
use crate::plan::Plan;
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
        self.all.iter().filter_map(|sent| sent.as_ref().ok())
    }

    fn heading(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let load = &self.plan.load;
        let times = load.times;
        let often = match (times, load.concurrency.min(times)) {
            (1, _) => "once".to_owned(),
            (_, 1) => format!("{times} times, one after another"),
            (_, together) => format!("{times} times, {together} at once"),
        };
        writeln!(f, "{}, {often}, to {}\n", self.plan.message, load.to)
    }

    fn table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut groups = BTreeMap::<_, Vec<Duration>>::new();
        for answer in self.answers() {
            let outcome = answer.outcome.as_deref().unwrap_or(NONE);
            let group = groups.entry((answer.status, outcome)).or_default();
            group.push(answer.took);
        }
        let (count, median, p99, max) = ("count", "median ms", "p99 ms", "max ms");
        writeln!(
            f,
            "status  outcome     {count:>6}  {median:>9}  {p99:>9}  {max:>9}"
        )?;
        for ((status, outcome), mut times) in groups {
            times.sort_unstable();
            let count = times.len();
            let [median, p99, max] = [50, 99, 100].map(|percent| percentile(&times, percent));
            writeln!(
                f,
                "{status:<6}  {outcome:<10}  {count:>6}  {median:>9.1}  {p99:>9.1}  {max:>9.1}"
            )?;
        }
        let mut unanswered = BTreeMap::new();
        for none in self.all.iter().filter_map(|sent| sent.as_ref().err()) {
            *unanswered.entry(&none.reason).or_insert(0) += 1;
        }
        for (reason, count) in unanswered {
            writeln!(f, "{NONE:<6}  {NONE:<10}  {count:>6}  no answer: {reason}")?;
        }
        Ok(())
    }

    /// Writes the text of the first unexpected answer for each status and outcome.
    fn texts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut told = BTreeSet::new();
        let unexpected = |answer: &&Answer| !self.plan.expectation.allows(answer);
        for answer in self.answers().filter(unexpected) {
            let outcome = answer.outcome.as_deref().unwrap_or(NONE);
            if told.insert((answer.status, outcome)) && !answer.text.is_empty() {
                let text = String::from_utf8_lossy(&answer.text);
                let text = text.trim_end().escape_debug();
                writeln!(f, "\n{} {outcome} says: {text}", answer.status)?;
            }
        }
        Ok(())
    }

    fn verdict(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let expectation = self.plan.expectation;
        if !self.answers().any(|answer| answer.outcome.is_some()) {
            writeln!(
                f,
                "\nNo answer has x-webhook-outcome: the endpoint is not behind idempotent-webhook, so its \
                 answers are judged by the status alone."
            )?;
        }
        if !self.is_as_expected() && self.answers().any(|answer| answer.status == 401) {
            writeln!(
                f,
                "\nA 401 means that the endpoint has another secret or another provider, or that a captured \
                 signature has expired. \"webhook verify\" shows which."
            )?;
            if let Message::Captured(_) = self.plan.message {
                writeln!(
                    f,
                    "A capture with pseudonyms, such as one from the dashboard, has no signature: --provider signs it \
                     again."
                )?;
            }
        }
        match self.is_as_expected() {
            true => writeln!(f, "\nAs expected: {expectation}."),
            false => writeln!(f, "\nNot as expected. Expected: {expectation}."),
        }
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.heading(f)?;
        self.table(f)?;
        self.texts(f)?;
        self.verdict(f)
    }
}

/// A percentile of sorted times, in milliseconds: the smallest time that this percentage of the
/// times do not exceed.
fn percentile(times: &[Duration], percent: usize) -> f64 {
    let rank = (times.len() * percent).div_ceil(100);
    let time = times.get(rank.saturating_sub(1));
    time.map_or(0.0, Duration::as_secs_f64) * 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_were_measured() {
        let times: Vec<_> = (1..=200).map(Duration::from_millis).collect();
        let of = |percent| percentile(&times, percent).round();
        assert_eq!([of(50), of(99), of(100)], [100.0, 198.0, 200.0]);
        assert_eq!(percentile(&[], 50), 0.0);
    }
}
