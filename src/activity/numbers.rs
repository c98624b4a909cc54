//! The numbers of this process that are not flushed yet. The dashboard reads the tables instead:
//! `dashboard/activity.rs` reads the activity by hour, and `dashboard/endpoints.rs` reads which deliveries wait or are
//! dead.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use tokio::time::Instant;

/// Where an outcome comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    /// A request of the provider.
    Request,
    /// An attempt at a kept delivery.
    Recovery,
    /// A call of the handler. The outcome is the time that the call took.
    Handler,
    /// An event that is ignored. The outcome is its event type.
    Ignored,
    /// A delivery that never arrived, as the provider's list of events shows.
    Reconciliation,
    /// An authentic delivery whose payload has another version than the expected one. The outcome is that version.
    Version,
    /// An authentic delivery, if there are several secrets. The outcome is the position of the secret that verified it.
    Secret,
}

impl Source {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Recovery => "recovery",
            Self::Handler => "handler",
            Self::Ignored => "ignored",
            Self::Reconciliation => "reconciliation",
            Self::Version => "version",
            Self::Secret => "secret",
        }
    }
}

/// The buckets for handler times, each with its longest time. A bucket's name is that time in milliseconds.
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

/// The name of the bucket for a time.
pub(super) fn bucket(took: Duration) -> &'static str {
    let bucket = TIMES.iter().find(|(_, longest)| took <= *longest);
    bucket.map_or("inf", |(name, _)| name)
}

/// The collective name of ignored event types whose own names are not stored, because there are too many.
const OTHER_TYPES: &str = "*";

/// The maximum number of names of ignored types that a layer stores a day. Providers have up to about 300 types.
const MAX_TYPES: usize = 500;

/// The maximum number of payload versions that a layer stores a day. If the version is not signed, a captured request
/// can carry a made-up one.
pub(super) const MAX_VERSIONS: usize = 10;

/// The maximum length of a stored name of an ignored type, or of a stored version, in characters.
const MAX_TYPE: usize = 100;

/// The maximum length of a stored reason, in characters.
const MAX_REASON: usize = 300;

/// The numbers of a layer. There are only a few, so that the look-up in each request is fast.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    counts: BTreeMap<(Source, Cow<'static, str>), u64>,
    rejections: BTreeMap<&'static str, Rejected>,
    /// The event types that arrived.
    seen: BTreeMap<String, OfTable>,
}

/// Whether the layer's table of event types has a name that matches a type. If not, a sender may have made the type up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OfTable {
    Yes,
    No,
}

/// Rejected requests that have the same cause. A cause is one of a few names.
#[derive(Debug)]
pub(super) struct Rejected {
    pub(super) count: u64,
    /// The reason of the last rejection.
    pub(super) reason: String,
}

impl Numbers {
    pub(super) fn is_empty(&self) -> bool {
        self.counts.is_empty() && self.rejections.is_empty() && self.seen.is_empty()
    }

    pub(super) fn add(&mut self, source: Source, outcome: Cow<'static, str>, count: u64) {
        *self.counts.entry((source, outcome)).or_default() += count;
    }

    pub(super) fn add_rejection(&mut self, cause: &'static str, reason: &str) {
        let reason = stored(reason, MAX_REASON);
        let count = self.rejections.get(cause).map_or(0, |known| known.count) + 1;
        self.rejections.insert(cause, Rejected { count, reason });
    }

    pub(super) fn see(&mut self, name: &str, of_table: OfTable) {
        if !self.seen.contains_key(name) {
            self.seen.insert(name.to_owned(), of_table);
        }
    }

    /// Adds numbers back that were taken, but could not be written.
    pub(super) fn give_back(&mut self, taken: Self) {
        for ((source, outcome), count) in taken.counts {
            self.add(source, outcome, count);
        }
        for (cause, taken) in taken.rejections {
            let count = taken.count;
            self.rejections
                .entry(cause)
                // Another rejection came meanwhile, and the reason of the later one stays.
                .and_modify(|known| known.count += count)
                .or_insert(taken);
        }
        self.seen.extend(taken.seen);
    }

    pub(super) fn seen(&self) -> impl Iterator<Item = (&str, OfTable)> {
        self.seen
            .iter()
            .map(|(name, of_table)| (&**name, *of_table))
    }

    pub(super) fn counts(&self) -> impl Iterator<Item = (Source, &str, u64)> {
        let counts = self.counts.iter();
        counts.map(|((source, outcome), count)| (*source, &**outcome, *count))
    }

    pub(super) fn rejections(&self) -> impl Iterator<Item = (&'static str, &Rejected)> {
        self.rejections
            .iter()
            .map(|(cause, rejected)| (*cause, rejected))
    }
}

/// How long stored names count towards the limit.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The stored names of ignored types. Their number is limited for each day, and not only until the next write. After a
/// day, the names are forgotten, so that made-up names make room for others.
#[derive(Debug)]
pub(super) struct Types {
    names: HashSet<String>,
    since: Instant,
}

impl Default for Types {
    fn default() -> Self {
        Self {
            names: HashSet::new(),
            since: Instant::now(),
        }
    }
}

impl Types {
    /// The name under which a type is counted.
    pub(super) fn name(&mut self, event_type: &str) -> Cow<'static, str> {
        self.name_within(event_type, MAX_TYPES)
    }

    /// The name under which `name` is counted: `name` itself, or `*` if `most` other names are already stored.
    pub(super) fn name_within(&mut self, name: &str, most: usize) -> Cow<'static, str> {
        let name = stored(name, MAX_TYPE);
        if self.since.elapsed() >= DAY {
            *self = Self::default();
        }
        if !self.names.contains(&name) {
            if self.names.len() >= most {
                return OTHER_TYPES.into();
            }
            self.names.insert(name.clone());
        }
        name.into()
    }
}

/// Cuts a text to a maximum length, and removes NUL, which Postgres cannot store.
fn stored(text: &str, longest: usize) -> String {
    text.chars().filter(|c| *c != '\0').take(longest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_in_the_first_bucket_that_has_room_for_it() {
        let nanosecond = Duration::from_nanos(1);
        assert_eq!(bucket(Duration::ZERO), "1");
        for pair in TIMES.windows(2) {
            let [(name, longest), (next, _)] = pair else {
                continue;
            };
            assert_eq!(bucket(*longest), *name);
            assert_eq!(bucket(*longest + nanosecond), *next);
        }
        assert_eq!(bucket(Duration::MAX), "inf");
    }

    #[test]
    fn a_bucket_is_named_after_its_longest_time() {
        for (name, longest) in TIMES.iter().filter(|(name, _)| *name != "inf") {
            assert_eq!(*name, longest.as_millis().to_string());
        }
    }

    #[test]
    fn a_reason_is_cut_and_has_no_nul() {
        let mut numbers = Numbers::default();
        numbers.add_rejection("no_match", &format!("a\0b{}", "é".repeat(400)));
        let reasons: Vec<_> = numbers.rejections().map(|(_, r)| &*r.reason).collect();
        assert_eq!(reasons, [format!("ab{}", "é".repeat(298))]);
    }

    #[test]
    fn names_of_ignored_types_are_bounded_in_number_and_length() {
        let mut types = Types::default();
        let long = format!("ab{}", "é".repeat(98));
        assert_eq!(types.name(&format!("a\0b{}", "é".repeat(400))), long);
        for number in 0..1000 {
            types.name(&format!("type {number}"));
        }
        assert_eq!(types.name("type 498"), "type 498");
        assert_eq!(types.name("type 499"), "*");
        assert_eq!(types.name(&long), long);
    }

    /// A flood of made-up names does not hide a type that arrives the next day.
    #[tokio::test(start_paused = true)]
    async fn names_of_ignored_types_give_way_after_a_day() {
        let mut types = Types::default();
        for number in 0..1000 {
            types.name(&format!("type {number}"));
        }
        tokio::time::advance(DAY - Duration::from_secs(1)).await;
        assert_eq!(types.name("renamed"), "*");
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(types.name("renamed"), "renamed");
    }

    #[test]
    fn what_is_given_back_is_added_to_what_came_since() {
        let mut numbers = Numbers::default();
        numbers.add(Source::Request, "processed".into(), 1);
        numbers.add_rejection("no_match", "first");
        numbers.add_rejection("too_old", "old");
        numbers.see("invoice.paid", OfTable::Yes);
        let taken = std::mem::take(&mut numbers);
        numbers.add(Source::Request, "processed".into(), 1);
        numbers.add_rejection("no_match", "second");
        numbers.give_back(taken);
        let seen: Vec<_> = numbers.seen().collect();
        assert_eq!(seen, [("invoice.paid", OfTable::Yes)]);
        let counts: Vec<_> = numbers
            .counts()
            .map(|(_, outcome, n)| (outcome, n))
            .collect();
        assert_eq!(counts, [("processed", 2)]);
        let rejections: Vec<_> = numbers
            .rejections()
            .map(|(cause, rejected)| (cause, rejected.count, &*rejected.reason))
            .collect();
        assert_eq!(
            rejections,
            [("no_match", 2, "second"), ("too_old", 1, "old")]
        );
    }
}
