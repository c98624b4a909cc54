//! The numbers of the last hours, from the tables `activity` and `rejections`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use sqlx::{PgConnection, Row};

use super::html::Timestamp;

pub(super) const HOUR: i64 = 3_600;

const BY_HOUR: &str = "
    select
        endpoint,
        extract(epoch from hour)::int8 as hour,
        source,
        outcome,
        sum(count)::int8 as count,
        extract(epoch from max(last_at))::float8 as last_at
    from idempotent_webhook.activity
    where endpoint = any($1) and hour >= to_timestamp($2) and source not in ('handler', 'ignored', 'secret', 'version')
        and (source = 'request' or outcome in ('processed', 'failed', 'kept', 'missed'))
    group by endpoint, hour, source, outcome
";

const BY_VERSION: &str = "
    select extract(epoch from hour)::int8 as hour, version, source, outcome, count
    from idempotent_webhook.activity
    where endpoint = $1 and hour >= to_timestamp($2) and source not in ('ignored', 'secret', 'version')
    order by hour
";

/// How many requests and attempts had each outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Counts {
    /// Processed by a request, or by recovery.
    pub(super) processed: i64,
    pub(super) duplicates: i64,
    pub(super) rejected: i64,
    /// Failed attempts.
    pub(super) failed: i64,
    /// Accepted, to be processed later. Not part of [`total`](Self::total), because each delivery is counted again when
    /// it is processed or fails.
    pub(super) accepted: i64,
    /// Received by reconciliation, to be processed later. Not part of the total, because each delivery is counted again
    /// later.
    pub(super) missed: i64,
    /// Ignored, because their event type has no handler. Not part of the total.
    pub(super) ignored: i64,
}

impl Counts {
    fn add(&mut self, outcome: &str, count: i64) {
        let counted = match outcome {
            "processed" => &mut self.processed,
            "failed" | "kept" => &mut self.failed,
            "duplicate" => &mut self.duplicates,
            "rejected" => &mut self.rejected,
            "accepted" => &mut self.accepted,
            "missed" => &mut self.missed,
            "ignored" => &mut self.ignored,
            _ => return,
        };
        *counted += count;
    }

    pub(super) fn total(&self) -> i64 {
        self.processed + self.duplicates + self.rejected + self.failed
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.processed += other.processed;
        self.duplicates += other.duplicates;
        self.rejected += other.rejected;
        self.failed += other.failed;
        self.accepted += other.accepted;
        self.missed += other.missed;
        self.ignored += other.ignored;
    }
}

/// The numbers of an hour.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Hour {
    pub(super) at: Timestamp,
    #[serde(flatten)]
    pub(super) counts: Counts,
}

pub(super) fn sum<'a>(counts: impl IntoIterator<Item = &'a Counts>) -> Counts {
    let mut sum = Counts::default();
    for counts in counts {
        sum += *counts;
    }
    sum
}

/// The start times of the last hours, including the current one, oldest first.
pub(super) fn beginnings(now: f64, number: i64) -> Vec<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "whole seconds")]
    let now = now as i64;
    let current = now - now.rem_euclid(HOUR);
    (0..number)
        .rev()
        .map(|back| current - back * HOUR)
        .collect()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "far below what f64 holds exactly"
)]
pub(super) fn timestamp(seconds: i64) -> Timestamp {
    Timestamp(seconds as f64)
}

/// The last hours of an endpoint.
#[derive(Clone, Debug, Default)]
pub(super) struct Recent {
    pub(super) hours: Vec<Hour>,
    /// When an attempt last failed.
    pub(super) failed: Option<f64>,
    pub(super) processed: Option<f64>,
    /// When the provider sent its last authentic request.
    pub(super) authentic: Option<f64>,
}

impl Recent {
    fn add(&mut self, index: i64, (source, outcome): (&str, &str), count: i64, last_at: f64) {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let Some(hour) = self.hours.get_mut(index) else {
            return;
        };
        hour.counts.add(outcome, count);
        let later = |known: &mut Option<f64>| {
            *known = Some(known.map_or(last_at, |known| known.max(last_at)));
        };
        match outcome {
            "failed" | "kept" => later(&mut self.failed),
            "processed" => later(&mut self.processed),
            _ => {}
        }
        if source == "request" && !matches!(outcome, "rejected" | "handshake") {
            later(&mut self.authentic);
        }
    }
}

/// The last hours of each endpoint.
pub(super) async fn by_hour(
    connection: &mut PgConnection,
    endpoints: &[String],
    beginnings: &[i64],
) -> sqlx::Result<BTreeMap<String, Recent>> {
    let first = beginnings.first().copied().unwrap_or_default();
    let hours = beginnings.iter().map(|at| Hour {
        at: timestamp(*at),
        counts: Counts::default(),
    });
    let empty = Recent {
        hours: hours.collect(),
        ..Recent::default()
    };
    let mut all: BTreeMap<String, Recent> = endpoints
        .iter()
        .map(|name| (name.clone(), empty.clone()))
        .collect();
    let rows = sqlx::query(BY_HOUR).bind(endpoints).bind(first);
    for row in rows.fetch_all(connection).await? {
        if let Some(recent) = all.get_mut(row.try_get::<&str, _>("endpoint")?) {
            let index = (row.try_get::<i64, _>("hour")? - first) / HOUR;
            recent.add(
                index,
                (row.try_get("source")?, row.try_get("outcome")?),
                row.try_get("count")?,
                row.try_get("last_at")?,
            );
        }
    }
    Ok(all)
}

/// The highest finite upper bound of the buckets for handler durations, in milliseconds.
pub(super) const LONGEST: u64 = 50_000;

/// How long handlers took, by the upper bound of a bucket in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Times(BTreeMap<u64, i64>);

impl Times {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds this many handler runs to the bucket with this upper bound. The last bucket has no number as its bound.
    fn add(&mut self, bound: &str, count: i64) {
        let bound = bound.parse().unwrap_or(u64::MAX);
        *self.0.entry(bound).or_default() += count;
    }

    fn add_all(&mut self, other: &Self) {
        for (bound, count) in &other.0 {
            *self.0.entry(*bound).or_default() += count;
        }
    }

    /// The time within which this percentage of the handlers finished, in milliseconds: the upper bound of a bucket.
    /// `None` if no handler ran, or if the time is longer than all bounds.
    pub(super) fn within(&self, percent: i64) -> Option<u64> {
        let all: i64 = self.0.values().sum();
        let place = (all * percent + 99) / 100;
        let mut passed = 0;
        for (bound, count) in &self.0 {
            passed += count;
            if passed >= place {
                return Some(*bound).filter(|bound| *bound < u64::MAX);
            }
        }
        None
    }
}

/// The numbers of an hour or of a version, with the handler durations.
#[derive(Clone, Debug, Default)]
pub(super) struct Measured {
    pub(super) counts: Counts,
    pub(super) times: Times,
}

impl std::ops::AddAssign<&Self> for Measured {
    fn add_assign(&mut self, other: &Self) {
        self.counts += other.counts;
        self.times.add_all(&other.times);
    }
}

/// What an endpoint did, by hour and by application version.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) hours: BTreeMap<i64, Measured>,
    /// Each version's numbers, and the hours in which the version was counted.
    pub(super) versions: BTreeMap<String, (Measured, BTreeSet<i64>)>,
}

impl History {
    pub(super) async fn read(
        connection: &mut PgConnection,
        endpoint: &str,
        since: i64,
    ) -> sqlx::Result<Self> {
        let mut history = Self::default();
        let rows = sqlx::query(BY_VERSION).bind(endpoint).bind(since);
        for row in rows.fetch_all(connection).await? {
            let at: i64 = row.try_get("hour")?;
            let (source, outcome): (&str, &str) = (row.try_get("source")?, row.try_get("outcome")?);
            let count: i64 = row.try_get("count")?;
            let mut new = Measured::default();
            match (source, outcome) {
                ("handler", bound) => new.times.add(bound, count),
                ("request", outcome)
                | ("recovery", outcome @ ("processed" | "failed" | "kept"))
                | ("reconciliation", outcome @ "missed") => {
                    new.counts.add(outcome, count);
                }
                _ => continue,
            }
            let version: &str = row.try_get("version")?;
            let (of_version, seen) = history.versions.entry(version.to_owned()).or_default();
            seen.insert(at);
            for measured in [history.hours.entry(at).or_default(), of_version] {
                *measured += &new;
            }
        }
        Ok(history)
    }

    /// The versions that started in this hour. A version starts in an hour if it is counted in that hour, but not in
    /// the latest earlier hour with any counts.
    pub(super) fn began(&self, at: i64) -> Vec<&str> {
        let Some((before, _)) = self.hours.range(..at).next_back() else {
            return Vec::new();
        };
        self.versions
            .iter()
            .filter(|(_, (_, seen))| seen.contains(&at) && !seen.contains(before))
            .map(|(version, _)| &**version)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_share_is_the_bound_of_its_bucket() {
        let mut times = Times::default();
        assert_eq!(times.within(50), None);
        times.add("10", 94);
        times.add("200", 5);
        times.add("inf", 1);
        assert_eq!(times.within(50), Some(10));
        assert_eq!(times.within(94), Some(10));
        assert_eq!(times.within(95), Some(200));
        assert_eq!(times.within(100), None);
    }

    #[test]
    fn a_version_begins_where_the_hour_before_did_not_have_it() {
        let mut history = History::default();
        for (version, hours) in [("1", vec![0, 1, 2, 9]), ("2", vec![2, 3, 8])] {
            for at in hours {
                history.hours.entry(at).or_default();
                let (_, seen) = history.versions.entry(version.to_owned()).or_default();
                seen.insert(at);
            }
        }
        let began = |at| history.began(at);
        assert_eq!(began(0), Vec::<&str>::new());
        assert_eq!(began(2), ["2"]);
        assert_eq!(began(3), Vec::<&str>::new());
        // Nothing was counted in hours 4 to 7.
        assert_eq!(began(8), Vec::<&str>::new());
        // The application was rolled back to version 1.
        assert_eq!(began(9), ["1"]);
    }
}
