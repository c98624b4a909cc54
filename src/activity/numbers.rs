//! The numbers that are not flushed yet.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Where an outcome comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A request of the provider.
    Request,
    /// An attempt at a kept delivery.
    Recovery,
    /// A call of the handler. Its outcome is the time that it took.
    Handler,
    /// An event that is ignored. Its outcome is its type.
    Ignored,
    /// A delivery that never came, as the provider's list of events shows.
    Reconciliation,
}

impl Source {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Recovery => "recovery",
            Self::Handler => "handler",
            Self::Ignored => "ignored",
            Self::Reconciliation => "reconciliation",
        }
    }
}

/// The outcome of a delivery that runs again only if an operator retries it.
pub(crate) const DEAD: &str = "dead";

/// The outcome of a delivery that never came.
pub(crate) const MISSED: &str = "missed";

/// The outcomes of requests and attempts.
const OUTCOMES: [(Source, &str); 17] = [
    (Source::Reconciliation, MISSED),
    (Source::Recovery, DEAD),
    (Source::Recovery, "duplicate"),
    (Source::Recovery, "failed"),
    (Source::Recovery, "in-flight"),
    (Source::Recovery, "kept"),
    (Source::Recovery, "processed"),
    (Source::Request, "accepted"),
    (Source::Request, "discarded"),
    (Source::Request, "duplicate"),
    (Source::Request, "failed"),
    (Source::Request, "handshake"),
    (Source::Request, "ignored"),
    (Source::Request, "in-flight"),
    (Source::Request, "kept"),
    (Source::Request, "processed"),
    (Source::Request, "rejected"),
];

/// The buckets of the times of handlers: the longest time of each, which is its name in milliseconds.
const TIMES: [(&str, Duration); 16] = [
    ("1", Duration::from_millis(1)),
    ("2", Duration::from_millis(2)),
    ("5", Duration::from_millis(5)),
    ("10", Duration::from_millis(10)),
    ("20", Duration::from_millis(20)),
    ("50", Duration::from_millis(50)),
    ("100", Duration::from_millis(100)),
    ("200", Duration::from_millis(200)),
    ("500", Duration::from_millis(500)),
    ("1000", Duration::from_secs(1)),
    ("2000", Duration::from_secs(2)),
    ("5000", Duration::from_secs(5)),
    ("10000", Duration::from_secs(10)),
    ("20000", Duration::from_secs(20)),
    ("50000", Duration::from_secs(50)),
    ("inf", Duration::MAX),
];

const COUNTED: usize = OUTCOMES.len() + TIMES.len();

/// The types of ignored events whose name is not stored: it is not signed, a tenant may have chosen it, or there are
/// too many.
pub(crate) const OTHER_TYPES: &str = "*";

/// The most names of ignored types that a layer stores.
const MAX_TYPES: usize = 100;

/// The longest name of an ignored type that is stored, in characters.
const MAX_TYPE: usize = 100;

/// The longest reason that is stored, in characters.
const MAX_REASON: usize = 300;

/// The numbers of a layer.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    outcomes: [AtomicU64; OUTCOMES.len()],
    times: [AtomicU64; TIMES.len()],
    ignored: Mutex<Ignored>,
    rejections: Mutex<Rejections>,
}

/// Ignored events by their type. What is written stays, with zero: the names are bounded for as long as the layer
/// exists, and not from one write to the next.
#[derive(Debug, Default)]
struct Ignored(BTreeMap<String, u64>);

impl Ignored {
    fn add(&mut self, event_type: Option<&str>, count: u64) {
        // Postgres cannot store NUL.
        let name = event_type.map(|name| {
            let name = name.chars().filter(|c| *c != '\0');
            name.take(MAX_TYPE).collect::<String>()
        });
        let name = name.filter(|name| self.0.len() < MAX_TYPES || self.0.contains_key(name));
        let name = name.unwrap_or_else(|| OTHER_TYPES.to_owned());
        *self.0.entry(name).or_default() += count;
    }

    fn take(&mut self) -> Vec<(String, u64)> {
        let counted = self.0.iter_mut().filter(|(_, count)| **count > 0);
        counted
            .map(|(name, count)| (name.clone(), std::mem::take(count)))
            .collect()
    }

    fn is_empty(&self) -> bool {
        self.0.values().all(|count| *count == 0)
    }
}

/// Rejected requests by their cause, which is one of a few names.
pub(super) type Rejections = BTreeMap<&'static str, Rejected>;

/// Rejected requests of one cause.
#[derive(Debug)]
pub(super) struct Rejected {
    pub(super) count: u64,
    /// Of the last one.
    pub(super) reason: String,
}

// Numbers are added in one order with what a writer reads and writes when it ends: either the writer sees
// a number, or whoever has added it sees that there is no writer.
impl Numbers {
    pub(super) fn add(&self, source: Source, outcome: &'static str) {
        let index = OUTCOMES
            .iter()
            .position(|known| *known == (source, outcome));
        if let Some(count) = index.and_then(|index| self.outcomes.get(index)) {
            count.fetch_add(1, Ordering::SeqCst);
        }
    }

    pub(super) fn add_time(&self, took: Duration) {
        let index = TIMES.iter().position(|(_, longest)| took <= *longest);
        if let Some(count) = index.and_then(|index| self.times.get(index)) {
            count.fetch_add(1, Ordering::SeqCst);
        }
    }

    pub(super) fn add_rejection(&self, cause: &'static str, reason: &str) {
        // Postgres cannot store NUL.
        let reason = reason.chars().filter(|c| *c != '\0');
        let reason = reason.take(MAX_REASON).collect();
        let mut rejections = self.rejections();
        let count = rejections.get(cause).map_or(0, |known| known.count) + 1;
        rejections.insert(cause, Rejected { count, reason });
    }

    pub(super) fn add_ignored(&self, event_type: Option<&str>) {
        self.ignored().add(event_type, 1);
    }

    pub(super) fn is_empty(&self) -> bool {
        let mut counts = self.counts();
        counts.all(|count| count.load(Ordering::SeqCst) == 0)
            && self.ignored().is_empty()
            && self.rejections().is_empty()
    }

    pub(super) fn take(&self) -> Taken<'_> {
        let mut counts = [0; COUNTED];
        for (taken, count) in counts.iter_mut().zip(self.counts()) {
            *taken = count.swap(0, Ordering::Relaxed);
        }
        Taken {
            numbers: self,
            counts,
            ignored: self.ignored().take(),
            rejections: std::mem::take(&mut *self.rejections()),
        }
    }

    fn counts(&self) -> impl Iterator<Item = &AtomicU64> {
        self.outcomes.iter().chain(&self.times)
    }

    fn ignored(&self) -> MutexGuard<'_, Ignored> {
        self.ignored.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn rejections(&self) -> MutexGuard<'_, Rejections> {
        self.rejections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Numbers that are being written. Dropped, they are given back.
pub(super) struct Taken<'a> {
    numbers: &'a Numbers,
    counts: [u64; COUNTED],
    ignored: Vec<(String, u64)>,
    rejections: Rejections,
}

impl Taken<'_> {
    /// What there is of each source and outcome.
    pub(super) fn counts(&self) -> impl Iterator<Item = (Source, &str, u64)> {
        let times = TIMES.iter().map(|(name, _)| (Source::Handler, *name));
        let names = OUTCOMES.iter().copied().chain(times);
        let ignored = self.ignored.iter();
        let ignored = ignored.map(|(name, count)| (Source::Ignored, &**name, *count));
        names
            .zip(self.counts)
            .filter(|(_, count)| *count > 0)
            .map(|((source, outcome), count)| (source, outcome, count))
            .chain(ignored)
    }

    pub(super) fn rejections(&self) -> &Rejections {
        &self.rejections
    }

    /// They are written.
    pub(super) fn forget(mut self) {
        self.counts = [0; COUNTED];
        self.ignored.clear();
        self.rejections.clear();
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        for (count, taken) in self.numbers.counts().zip(self.counts) {
            count.fetch_add(taken, Ordering::Relaxed);
        }
        for (name, taken) in std::mem::take(&mut self.ignored) {
            self.numbers.ignored().add(Some(&name), taken);
        }
        let mut rejections = self.numbers.rejections();
        for (cause, taken) in std::mem::take(&mut self.rejections) {
            let count = taken.count;
            rejections
                .entry(cause)
                // It was rejected again since, with a later reason.
                .and_modify(|known| known.count += count)
                .or_insert(taken);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket_of(took: Duration) -> Vec<(String, u64)> {
        let numbers = Numbers::default();
        numbers.add_time(took);
        let taken = numbers.take();
        let counts = taken.counts();
        counts
            .map(|(_, outcome, count)| (outcome.to_owned(), count))
            .collect()
    }

    #[test]
    fn a_time_is_in_the_first_bucket_that_has_room_for_it() {
        let nanosecond = Duration::from_nanos(1);
        assert_eq!(bucket_of(Duration::ZERO), [("1".to_owned(), 1)]);
        for pair in TIMES.windows(2) {
            let [(name, longest), (next, _)] = pair else {
                continue;
            };
            assert_eq!(bucket_of(*longest), [((*name).to_owned(), 1)]);
            assert_eq!(bucket_of(*longest + nanosecond), [((*next).to_owned(), 1)]);
        }
        assert_eq!(bucket_of(Duration::MAX), [("inf".to_owned(), 1)]);
    }

    #[test]
    fn a_bucket_is_named_after_its_longest_time() {
        for (name, longest) in TIMES.iter().filter(|(name, _)| *name != "inf") {
            assert_eq!(*name, longest.as_millis().to_string());
        }
    }

    #[test]
    fn a_reason_is_cut_and_has_no_nul() {
        let numbers = Numbers::default();
        numbers.add_rejection("no_match", &format!("a\0b{}", "é".repeat(400)));
        let taken = numbers.take();
        let reasons: Vec<_> = taken.rejections().values().map(|r| &*r.reason).collect();
        assert_eq!(reasons, [format!("ab{}", "é".repeat(298))]);
    }

    fn ignored(taken: &Taken<'_>) -> Vec<(String, u64)> {
        let ignored = taken
            .counts()
            .filter(|(source, ..)| *source == Source::Ignored);
        ignored
            .map(|(_, name, count)| (name.to_owned(), count))
            .collect()
    }

    #[test]
    fn names_of_ignored_types_are_bounded_in_number_and_length() {
        let numbers = Numbers::default();
        numbers.add_ignored(Some(&format!("a\0b{}", "é".repeat(400))));
        numbers.add_ignored(None);
        let taken = numbers.take();
        let long = format!("ab{}", "é".repeat(98));
        assert_eq!(ignored(&taken), [("*".to_owned(), 1), (long.clone(), 1)]);
        taken.forget();
        assert!(numbers.is_empty());

        // Also over many writes.
        for number in 0..1000 {
            numbers.add_ignored(Some(&format!("type {number}")));
            numbers.take().forget();
        }
        numbers.add_ignored(Some("type 97"));
        numbers.add_ignored(Some("type 98"));
        numbers.add_ignored(Some(&long));
        let taken = numbers.take();
        let counted = [("*", 1), (&*long, 1), ("type 97", 1)];
        assert_eq!(
            ignored(&taken),
            counted.map(|(name, count)| (name.to_owned(), count))
        );
        drop(taken);
        assert!(!numbers.is_empty());
        assert_eq!(ignored(&numbers.take()).len(), 3);
    }

    #[test]
    fn what_is_given_back_is_added_to_what_came_since() {
        let numbers = Numbers::default();
        numbers.add(Source::Request, "processed");
        numbers.add_rejection("no_match", "first");
        numbers.add_rejection("too_old", "old");
        let taken = numbers.take();
        assert!(numbers.is_empty());
        numbers.add(Source::Request, "processed");
        numbers.add_rejection("no_match", "second");
        drop(taken);
        let all = numbers.take();
        let counts: Vec<_> = all.counts().map(|(_, outcome, n)| (outcome, n)).collect();
        assert_eq!(counts, [("processed", 2)]);
        let rejections = all.rejections().iter();
        let rejections: Vec<_> = rejections
            .map(|(cause, rejected)| (*cause, rejected.count, &*rejected.reason))
            .collect();
        assert_eq!(
            rejections,
            [("no_match", 2, "second"), ("too_old", 1, "old")]
        );
        all.forget();
        assert!(numbers.is_empty());
    }
}
