//! Unix times as providers write them.

use std::time::{Duration, SystemTime};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeUnit {
    Seconds,
    Milliseconds,
}

/// The time that a text of digits, and nothing else, stands for.
pub(crate) fn unix_time(text: &str, unit: TimeUnit) -> Option<SystemTime> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let count = text.parse().ok()?;
    SystemTime::UNIX_EPOCH.checked_add(match unit {
        TimeUnit::Seconds => Duration::from_secs(count),
        TimeUnit::Milliseconds => Duration::from_millis(count),
    })
}

/// The same time without its fraction of a second.
pub(crate) fn whole_seconds(time: SystemTime) -> SystemTime {
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
}
