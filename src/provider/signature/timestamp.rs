//! Times as providers write them.

use std::time::{Duration, SystemTime};

use crate::provider::calendar::{date, days_since_epoch};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeUnit {
    Seconds,
    Milliseconds,
}

/// How a time of signing is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeFormat {
    Unix(TimeUnit),
    /// In seconds, or in milliseconds if there are more than 11 digits.
    UnixOfEitherUnit,
    Rfc3339,
}

impl TimeFormat {
    pub(crate) fn parse(self, text: &str) -> Option<SystemTime> {
        match self {
            Self::Unix(unit) => unix_time(text, unit),
            Self::UnixOfEitherUnit if text.len() > 11 => unix_time(text, TimeUnit::Milliseconds),
            Self::UnixOfEitherUnit => unix_time(text, TimeUnit::Seconds),
            Self::Rfc3339 => rfc_3339(text),
        }
    }

    pub(crate) fn format(self, time: SystemTime) -> String {
        match self {
            Self::Unix(unit) => to_unix_time(time, unit).to_string(),
            Self::UnixOfEitherUnit => to_unix_time(time, TimeUnit::Seconds).to_string(),
            Self::Rfc3339 => to_rfc_3339(time),
        }
    }
}

/// Parses a Unix time that consists of digits only.
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

/// The Unix time as a provider writes it.
pub(crate) fn to_unix_time(time: SystemTime, unit: TimeUnit) -> u128 {
    let since_epoch = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    match unit {
        TimeUnit::Seconds => since_epoch.as_secs().into(),
        TimeUnit::Milliseconds => since_epoch.as_millis(),
    }
}

/// Parses a time such as `2023-11-14T22:13:20.123456789Z` or `2020-01-01T00:00:00-07:00`, not
/// before 1970. Digits beyond nanoseconds are dropped. A leap second counts as the second after it.
fn rfc_3339(text: &str) -> Option<SystemTime> {
    let (date, time) = text.split_once(['T', 't'])?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let zone = time.find(['Z', 'z', '+', '-'])?;
    let (time, zone) = (time.get(..zone)?, time.get(zone..)?);
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    let is_fraction = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let is_time = hour < 24 && minute < 60 && second <= 60;
    if !is_fraction || !is_time {
        return None;
    }
    let days = days_since_epoch(year, month, day)?;
    let nanos: u32 = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
    let offset = match zone.split_at_checked(1)? {
        ("Z" | "z", "") => 0,
        ("+", offset) => offset_seconds(offset)?,
        ("-", offset) => -offset_seconds(offset)?,
        _ => return None,
    };
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second - offset;
    SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds.try_into().ok()?, nanos))
}

/// The seconds of an offset from UTC, such as `07:00`.
fn offset_seconds(text: &str) -> Option<i64> {
    let [hours, minutes] = numbers(text, ':', [2, 2])?;
    (hours < 24 && minutes < 60).then_some(hours * 3600 + minutes * 60)
}

/// Parses numbers that have exactly these widths in digits.
fn numbers<const N: usize>(text: &str, separator: char, widths: [usize; N]) -> Option<[i64; N]> {
    let mut parts = text.split(separator);
    let mut numbers = [0; N];
    for (number, width) in numbers.iter_mut().zip(widths) {
        let part = parts.next()?;
        if part.len() != width || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(numbers)
}

/// The time in UTC, in whole seconds.
pub(crate) fn to_rfc_3339(time: SystemTime) -> String {
    // Four digits cannot hold a year after 9999.
    let seconds = to_unix_time(time, TimeUnit::Seconds).min(253_402_300_799);
    let seconds = i64::try_from(seconds).unwrap_or_default();
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let [year, month, day] = date(days);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

/// The time without its fraction of a second.
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

    #[test]
    fn a_time_of_either_unit_is_in_milliseconds_from_twelve_digits_on() {
        let read = |text| TimeFormat::UnixOfEitherUnit.parse(text);
        let at =
            |milliseconds| SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(milliseconds));
        assert_eq!(read("1750000000"), at(1_750_000_000_000));
        assert_eq!(read("17500000000"), at(17_500_000_000_000));
        assert_eq!(read("175000000000"), at(175_000_000_000));
        assert_eq!(read("1750000000123"), at(1_750_000_000_123));
        for wrong in ["", "1750000000.5", "-1750000000", "2025-06-15T15:06:40Z"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
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

    #[test]
    fn rfc_3339_is_read() {
        let at = |seconds, nanos| Some(SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos));
        for (text, time) in [
            ("1970-01-01T00:00:00Z", at(0, 0)),
            ("2023-11-14T22:13:20Z", at(1_700_000_000, 0)),
            (
                "2023-11-14T22:13:20.123456789Z",
                at(1_700_000_000, 123_456_789),
            ),
            (
                "2023-11-14T22:13:20.1234567891Z",
                at(1_700_000_000, 123_456_789),
            ),
            ("2023-11-14T22:13:20.5Z", at(1_700_000_000, 500_000_000)),
            ("2020-01-01T00:00:00-07:00", at(1_577_862_000, 0)),
            ("2020-01-01T07:30:00+07:30", at(1_577_836_800, 0)),
            ("2000-02-29T23:59:60Z", at(951_868_800, 0)),
            ("2100-03-01T00:00:00Z", at(4_107_542_400, 0)),
        ] {
            assert_eq!(rfc_3339(text), time, "{text}");
        }
        for wrong in [
            "",
            "T",
            "2023-11-14",
            "2023-11-14 22:13:20Z",
            "2023-11-14T22:13:20",
            "2023-11-14T22:13:20.Z",
            "2023-11-14T22:13Z",
            "2023-13-14T22:13:20Z",
            "2023-02-29T22:13:20Z",
            "2023-11-14T24:13:20Z",
            "2023-11-14T22:13:20+0700",
            "2023-11-14T22:13:20+24:00",
            "2023-11-14T22:13:20Z07:00",
            "2023-11-14T22:13:20z-07:00",
            "23-11-14T22:13:20Z",
            "+023-11-14T22:13:20Z",
            "1969-12-31T23:59:59Z",
            "2023-11-14T22:13:20Z ",
            "2023-11-14T22:13:20é",
        ] {
            assert_eq!(rfc_3339(wrong), None, "{wrong:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_time_in_rfc_3339_is_read_as_it_is_written(seconds in 0..253_402_300_800_u64) {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            proptest::prop_assert_eq!(rfc_3339(&to_rfc_3339(time)), Some(time));
        }

        #[test]
        fn any_text_is_survived_as_a_time(text in "[0-9TtZz:.+é-]{0,40}") {
            let _ = rfc_3339(&text);
        }
    }
}
