//! Computes the period that a round covers.

use std::time::{Duration, SystemTime};

use crate::transaction::pg_time::{from_unix_time, unix_time};

/// A round overlaps the previous round by at least this time, because lists have times in whole seconds, and may show
/// an event late.
const SHORTEST_OVERLAP: Duration = Duration::from_secs(60);

/// What Postgres knows about a list. Times are in Unix seconds, by the clock of Postgres.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) now: f64,
    /// The time since which deliveries are recorded.
    pub(super) recorded_since: f64,
    /// The time up to which the list is reconciled, at this path (route) or at another one.
    pub(super) reconciled_until: Option<f64>,
    /// The period of the unfinished round.
    pub(super) unfinished: Option<Times>,
    /// Whether the unfinished round was at this list's path.
    pub(super) is_at_this_path: bool,
    /// Deliveries that were received before this time may have been deleted.
    pub(super) pruned_before: Option<f64>,
}

/// A period, in Unix seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Times {
    pub(super) since: f64,
    pub(super) until: f64,
}

/// The settings that limit the period of a round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) look_back: Duration,
    /// For how long the list shows an event.
    pub(super) goes_back: Option<Duration>,
    pub(super) grace: Duration,
    /// Whether deliveries belong to tenants.
    pub(super) has_tenants: bool,
    /// Events before this time are left alone, if the application sets one.
    pub(super) since: Option<SystemTime>,
    /// Whether the round is on request. Such a round also covers periods that are already reconciled.
    pub(super) on_request: bool,
}

/// What a round covers. Times are in Unix seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bounds {
    /// The time since which deliveries are recorded.
    pub(super) recorded_since: f64,
    pub(super) reconciled_until: Option<f64>,
    pub(super) times: Times,
    /// Whether this resumes a round that was interrupted.
    pub(super) resumes: bool,
    /// The start of the gap, which ends where the round starts. Events in the gap are not reconciled, and are too old
    /// for this round.
    pub(super) gap_since: Option<f64>,
}

/// The period of a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    pub(super) since: SystemTime,
    pub(super) until: SystemTime,
}

impl Bounds {
    pub(super) fn new(known: &Known, limits: &Limits) -> Self {
        let grace = limits.grace.as_secs_f64();
        let begins_at = limits.since.map_or(known.recorded_since, unix_time);
        let resumed = known
            .unfinished
            .filter(|_| known.is_at_this_path && !limits.on_request);
        let overlapping = known
            .reconciled_until
            .map(|until| until - limits.grace.max(SHORTEST_OVERLAP).as_secs_f64());

        // The time from which events are not yet reconciled. `None` if only `look_back` limits the round.
        let next = match resumed {
            _ if limits.on_request => None,
            Some(round) => Some(round.since),
            None => overlapping.or(known.unfinished.map(|round| round.since)),
        };
        let look_back = match resumed {
            Some(_) => None,
            None => Some(known.now - limits.look_back.as_secs_f64()),
        };
        let since = [
            next,
            look_back,
            limits.goes_back.map(|time| known.now - time.as_secs_f64()),
            // An older event may be unknown because its delivery was deleted.
            known.pruned_before.map(|before| before + grace),
        ]
        .into_iter()
        .flatten()
        .fold(begins_at, f64::max);
        let until = resumed.map_or(known.now - grace, |round| round.until);

        // The time from which rounds must cover all events. Until the first round is complete, this is the end of the
        // first round.
        let promised = match (known.reconciled_until, resumed) {
            _ if limits.on_request => None,
            (None, _) => known.unfinished.map(|round| round.until),
            (Some(_), Some(round)) => Some(round.since),
            (Some(_), None) => overlapping,
        };
        let gap_since = promised
            .map(|promised| promised.max(begins_at))
            .filter(|gap| *gap < since);
        Self {
            recorded_since: known.recorded_since,
            reconciled_until: known.reconciled_until,
            times: Times { since, until },
            resumes: resumed.is_some(),
            gap_since,
        }
    }

    pub(super) fn span(&self) -> Span {
        Span {
            since: from_unix_time(self.times.since),
            until: from_unix_time(self.times.until),
        }
    }

    /// The period that rounds should have covered, but that this round does not cover.
    pub(super) fn gap(&self) -> Option<Span> {
        Some(Span {
            since: from_unix_time(self.gap_since?),
            until: self.span().since,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: f64 = 3600.0;
    const NOW: f64 = 1_000.0 * HOUR;

    fn hours(n: u64) -> Duration {
        Duration::from_secs(n * 3600)
    }

    /// Deliveries have been recorded for a hundred hours, and nothing else is known.
    const KNOWN: Known = Known {
        now: NOW,
        recorded_since: NOW - 100.0 * HOUR,
        reconciled_until: None,
        unfinished: None,
        is_at_this_path: true,
        pruned_before: None,
    };

    fn limits() -> Limits {
        Limits {
            look_back: hours(10),
            goes_back: None,
            grace: hours(1),
            has_tenants: false,
            since: None,
            on_request: false,
        }
    }

    /// The start and the end of the round, whether it is resumed, and the start of the gap. Times are in hours before
    /// now.
    fn bounds(known: Known, limits: Limits) -> (f64, f64, bool, Option<f64>) {
        let ago = |time| (NOW - time) / HOUR;
        let bounds = Bounds::new(&known, &limits);
        let Times { since, until } = bounds.times;
        (
            ago(since),
            ago(until),
            bounds.resumes,
            bounds.gap_since.map(ago),
        )
    }

    fn ago(hours: f64) -> f64 {
        NOW - hours * HOUR
    }

    fn unfinished(since: f64, until: f64) -> Option<Times> {
        Some(Times {
            since: ago(since),
            until: ago(until),
        })
    }

    #[test]
    fn a_first_round_looks_back_and_not_before_what_is_recorded() {
        assert_eq!(bounds(KNOWN, limits()), (10.0, 1.0, false, None));
        let known = Known {
            recorded_since: ago(3.0),
            ..KNOWN
        };
        assert_eq!(bounds(known, limits()), (3.0, 1.0, false, None));
        let since = Some(from_unix_time(ago(5.0)));
        let limits = Limits { since, ..limits() };
        assert_eq!(bounds(known, limits), (5.0, 1.0, false, None));
    }

    #[test]
    fn a_further_round_overlaps_the_one_before_by_the_grace_time_or_a_minute() {
        let known = Known {
            reconciled_until: Some(ago(4.0)),
            ..KNOWN
        };
        assert_eq!(bounds(known, limits()), (5.0, 1.0, false, None));
        let grace = Duration::ZERO;
        let limits = Limits { grace, ..limits() };
        assert_eq!(bounds(known, limits), (4.0 + 1.0 / 60.0, 0.0, false, None));
    }

    #[test]
    fn what_no_round_looks_at_any_more_is_a_gap() {
        let known = Known {
            reconciled_until: Some(ago(20.0)),
            ..KNOWN
        };
        assert_eq!(bounds(known, limits()), (10.0, 1.0, false, Some(21.0)));
        // Times before the first recorded delivery are not a gap.
        let recorded_since = ago(15.0);
        let known = Known {
            recorded_since,
            ..known
        };
        assert_eq!(bounds(known, limits()), (10.0, 1.0, false, Some(15.0)));
        let known = Known {
            recorded_since: ago(10.0),
            ..known
        };
        assert_eq!(bounds(known, limits()), (10.0, 1.0, false, None));
    }

    #[test]
    fn a_list_that_does_not_go_back_and_rows_that_are_deleted_bound_a_round() {
        let known = Known {
            reconciled_until: Some(ago(8.0)),
            ..KNOWN
        };
        let goes_back = Some(hours(3));
        let short = Limits {
            goes_back,
            ..limits()
        };
        assert_eq!(bounds(known, short), (3.0, 1.0, false, Some(9.0)));
        let pruned_before = Some(ago(6.0));
        let known = Known {
            pruned_before,
            ..known
        };
        assert_eq!(bounds(known, limits()), (5.0, 1.0, false, Some(9.0)));
    }

    #[test]
    fn a_round_that_was_broken_off_keeps_its_times_however_long_ago() {
        let known = Known {
            reconciled_until: Some(ago(40.0)),
            unfinished: unfinished(41.0, 30.0),
            ..KNOWN
        };
        assert_eq!(bounds(known, limits()), (41.0, 30.0, true, None));
        // The part of the period whose deliveries were deleted meanwhile is left out, and reported.
        let pruned_before = Some(ago(36.0));
        let known = Known {
            pruned_before,
            ..known
        };
        assert_eq!(bounds(known, limits()), (35.0, 30.0, true, Some(41.0)));
    }

    #[test]
    fn a_first_round_that_was_broken_off_has_promised_nothing_before_its_end() {
        let known = Known {
            unfinished: unfinished(20.0, 12.0),
            ..KNOWN
        };
        assert_eq!(bounds(known, limits()), (20.0, 12.0, true, None));
        // An unfinished round at another path is not resumed.
        let known = Known {
            is_at_this_path: false,
            ..known
        };
        assert_eq!(bounds(known, limits()), (10.0, 1.0, false, Some(12.0)));
    }

    #[test]
    fn a_round_on_request_looks_at_all_and_leaves_no_gap() {
        let known = Known {
            reconciled_until: Some(ago(20.0)),
            unfinished: unfinished(21.0, 15.0),
            ..KNOWN
        };
        let limits = Limits {
            on_request: true,
            ..limits()
        };
        assert_eq!(bounds(known, limits), (10.0, 1.0, false, None));
    }
}
