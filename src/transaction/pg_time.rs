//! Times within Postgres' range.

use std::time::{Duration, SystemTime};

use sqlx::postgres::types::PgInterval;

/// An interval of at most a millennium, which Postgres can subtract from every timestamp.
pub(crate) fn interval(duration: Duration) -> PgInterval {
    const MILLENNIUM: Duration = Duration::from_secs(1000 * 365 * 24 * 60 * 60);
    PgInterval {
        months: 0,
        days: 0,
        microseconds: i64::try_from(duration.min(MILLENNIUM).as_micros()).unwrap_or(i64::MAX),
    }
}

pub(crate) fn unix_time(time: SystemTime) -> f64 {
    time.duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs_f64()
}

pub(crate) fn from_unix_time(seconds: f64) -> SystemTime {
    let since = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let time = SystemTime::UNIX_EPOCH.checked_add(since);
    time.unwrap_or(SystemTime::UNIX_EPOCH)
}

/// A value for `lock_timeout`. It is never zero, which would mean no limit.
pub(crate) fn millis(time: Duration) -> String {
    time.as_millis().max(1).to_string()
}
