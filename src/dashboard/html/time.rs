//! Times: in UTC, which the script turns into the reader's zone.

use std::fmt;

use maud::{Markup, Render, html};

/// A time in Unix seconds.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(in crate::dashboard) struct Timestamp(pub(in crate::dashboard) f64);

impl Timestamp {
    /// The time, and how long ago that was, or how soon it will be.
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

    /// Year, month, day, hour, minute, second in UTC.
    fn civil(self) -> [i64; 6] {
        // Within what Postgres can hold, and so far within what `i64` can.
        #[expect(clippy::cast_possible_truncation, reason = "only the fraction is cut")]
        let seconds = self.0.floor() as i64;
        let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        // Howard Hinnant's algorithm, in years that begin in March.
        let days = days + 719_468;
        let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        let year = year + era * 400 + i64::from(month <= 2);
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        [year, month, day, hour, minute, second]
    }
}

/// As in the attribute `datetime`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [year, month, day, hour, minute, second] = self.civil();
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"
        )
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

/// A time span in its largest unit, such as `3 min`.
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
