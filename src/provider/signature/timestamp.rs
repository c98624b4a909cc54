//! Unix times as providers write them.

use std::time::{Duration, SystemTime};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeUnit {
    Seconds,
    Milliseconds,
}

/// Parses a Unix time of digits and nothing else.
pub(super) fn unix_time(text: &str, unit: TimeUnit) -> Option<SystemTime> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let count = text.parse().ok()?;
    SystemTime::UNIX_EPOCH.checked_add(match unit {
        TimeUnit::Seconds => Duration::from_secs(count),
        TimeUnit::Milliseconds => Duration::from_millis(count),
    })
}

/// The Unix time as a provider writes it.
pub(super) fn to_unix_time(time: SystemTime, unit: TimeUnit) -> u128 {
    let since_epoch = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    match unit {
        TimeUnit::Seconds => since_epoch.as_secs().into(),
        TimeUnit::Milliseconds => since_epoch.as_millis(),
    }
}

/// The time without its fraction of a second.
pub(super) fn whole_seconds(time: SystemTime) -> SystemTime {
    time.duration_since(SystemTime::UNIX_EPOCH)
        .map_or(time, |since| {
            SystemTime::UNIX_EPOCH + Duration::from_secs(since.as_secs())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_digits_are_a_time() {
        let seconds = |text| unix_time(text, TimeUnit::Seconds);
        assert_eq!(
            seconds("1700000000"),
            unix_time("1700000000000", TimeUnit::Milliseconds)
        );
        assert!(seconds("0").is_some());
        for wrong in ["", "-1", "+1", "1.5", " 1", "1e9", "99999999999999999999"] {
            assert_eq!(seconds(wrong), None, "{wrong:?}");
        }
        assert_eq!(seconds(&u64::MAX.to_string()), None);
    }

    #[test]
    fn a_time_is_written_as_it_is_read() {
        for unit in [TimeUnit::Seconds, TimeUnit::Milliseconds] {
            let time = unix_time("1700000000", unit);
            assert_eq!(
                time.map(|time| to_unix_time(time, unit)),
                Some(1_700_000_000)
            );
        }
    }
}
