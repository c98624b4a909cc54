//! Times in UTC, which the script converts to the reader's time zone.

use std::fmt;

use maud::{Markup, Render, html};
use serde::{Serialize, Serializer};

use crate::provider::calendar::{date, days_since_epoch};

/// A time in Unix seconds.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(in crate::dashboard) struct Timestamp(pub(in crate::dashboard) f64);

impl Timestamp {
    /// The time, and how long ago it was, or how soon it will be.
    pub(in crate::dashboard) fn with_age(self, now: Self) -> Markup {
        let seconds = now.0 - self.0;
        html! {
            (self)
            " "
            span.age {
                @if seconds >= 0.0 { (duration(seconds)) " ago" }
                @else { "in " (duration(-seconds)) }
            }
        }
    }

    /// Parses a time in UTC, such as `2026-11-23T05:00`, `2026-11-23T05:00:00Z` or `2026-11-23`.
    pub(in crate::dashboard) fn parse(text: &str) -> Option<Self> {
        let text = text.strip_suffix('Z').unwrap_or(text);
        let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
        let mut date = date.splitn(3, '-').map(number);
        let (year, month, day) = (date.next()??, date.next()??, date.next()??);
        let mut time = time.splitn(3, ':').map(number);
        let (hour, minute) = (time.next()??, time.next()??);
        let second = time.next().unwrap_or(Some(0))?;
        let is_valid = (1970..=2999).contains(&year) && hour < 24 && minute < 60 && second < 60;
        if !is_valid {
            return None;
        }
        let days = days_since_epoch(year, month, day)?;
        let seconds = days * 86_400 + hour * 3_600 + minute * 60 + second;
        #[expect(
            clippy::cast_precision_loss,
            reason = "far below what f64 holds exactly"
        )]
        let time = Self(seconds as f64);
        Some(time)
    }

    /// The time in the format of a form field.
    pub(in crate::dashboard) fn field(self) -> String {
        let text = self.to_string();
        text.get(..16).unwrap_or_default().to_owned()
    }

    /// Year, month, day, hour, minute, second in UTC.
    fn civil(self) -> [i64; 6] {
        // Postgres timestamps are far within the range of `i64`.
        #[expect(clippy::cast_possible_truncation, reason = "only the fraction is cut")]
        let seconds = self.0.floor() as i64;
        let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let [year, month, day] = date(days);
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        [year, month, day, hour, minute, second]
    }
}

/// The format of the attribute `datetime`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [year, month, day, hour, minute, second] = self.civil();
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"
        )
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Render for Timestamp {
    fn render(&self) -> Markup {
        let [year, month, day, hour, minute, second] = self.civil();
        let date = format!("{year:04}-{month:02}-{day:02}");
        html! {
            time datetime=(format!("{self}"))
                title=(format!("{date} {hour:02}:{minute:02}:{second:02} UTC"))
            {
                (date) " " (format!("{hour:02}:{minute:02} UTC"))
            }
        }
    }
}

fn number(digits: &str) -> Option<i64> {
    let is_number = !digits.is_empty() && digits.len() <= 4;
    let is_number = is_number && digits.bytes().all(|digit| digit.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

/// A duration in its largest unit, rounded down, such as `3 min`.
pub(in crate::dashboard) fn duration(seconds: f64) -> String {
    const UNITS: [(f64, &str); 3] = [(86_400.0, "d"), (3_600.0, "h"), (60.0, "min")];
    let unit = UNITS.into_iter().find(|(unit, _)| seconds >= *unit);
    let (unit, name) = unit.unwrap_or((1.0, "s"));
    format!("{:.0} {name}", (seconds / unit).floor())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0.0, "1970-01-01T00:00:00Z"),
            (951_782_399.9, "2000-02-28T23:59:59Z"),
            (951_782_400.0, "2000-02-29T00:00:00Z"),
            (1_709_251_199.0, "2024-02-29T23:59:59Z"),
            (1_709_251_200.0, "2024-03-01T00:00:00Z"),
            (4_107_542_400.0, "2100-03-01T00:00:00Z"),
            (-1.0, "1969-12-31T23:59:59Z"),
        ] {
            assert_eq!(Timestamp(seconds).to_string(), expected);
        }
    }

    #[test]
    fn times_are_parsed_as_they_are_written() {
        for (text, expected) in [
            ("1970-01-01", "1970-01-01T00:00:00Z"),
            ("2000-02-29T23:59", "2000-02-29T23:59:00Z"),
            ("2024-12-31T23:59:59Z", "2024-12-31T23:59:59Z"),
            ("2100-03-01 00:00", "2100-03-01T00:00:00Z"),
        ] {
            let parsed = Timestamp::parse(text).map(|time| time.to_string());
            assert_eq!(parsed.as_deref(), Some(expected));
        }
        for text in [
            "",
            "now",
            "2026",
            "2026-11",
            "2026-02-30",
            "2026-13-01",
            "2026-11-23T24:00",
            "2026-11-23T5",
            "2026-11-23T05:00+01:00",
            "2026-11-23T05:00:00.5",
            "-2026-11-23",
        ] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }

    #[test]
    fn time_spans_are_in_their_largest_unit() {
        for (seconds, expected) in [
            (0.4, "0 s"),
            (59.9, "59 s"),
            (60.0, "1 min"),
            (3_599.0, "59 min"),
            (86_399.0, "23 h"),
            (864_000.0, "10 d"),
        ] {
            assert_eq!(duration(seconds), expected);
        }
    }
}
