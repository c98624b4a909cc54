//! Dates and times in the format of ISO 8601.

/// A date, optionally with a time.
pub(super) struct Timestamp<'a> {
    pub(super) date: Date,
    pub(super) time: Option<Time<'a>>,
}

pub(super) struct Date {
    pub(super) year: u32,
    pub(super) month: u32,
    pub(super) day: u32,
}

pub(super) struct Time<'a> {
    /// `T`, or a space.
    pub(super) separator: &'a str,
    pub(super) hour: u32,
    pub(super) minute: u32,
    pub(super) second: Option<u32>,
    /// The fraction of a second, with its dot.
    pub(super) fraction: &'a str,
    /// The time zone, including a space before it. Empty if there is no time zone.
    pub(super) zone: &'a str,
}

impl<'a> Timestamp<'a> {
    /// Reads a text that consists only of a date or a time.
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let (timestamp, found) = Self::at(text)?;
        (found == text).then_some(timestamp)
    }

    /// Reads the date or time at the start of a text. It must end where a word ends.
    pub(super) fn at(text: &'a str) -> Option<(Self, &'a str)> {
        let (date, after) = Date::at(text)?;
        if let Some((time, rest)) = Time::at(after)
            && is_end(rest)
        {
            let found = text.split_at(text.len() - rest.len()).0;
            let time = Some(time);
            return Some((Self { date, time }, found));
        }
        let found = text.split_at(text.len() - after.len()).0;
        is_end(after).then_some((Self { date, time: None }, found))
    }

    /// Whether it is a time since 2010, or a date since 2015, which is too recent for most people's
    /// date of birth.
    pub(super) fn is_recent(&self) -> bool {
        let first = if self.time.is_some() { 2010 } else { 2015 };
        self.date.year >= first
    }
}

fn is_end(rest: &str) -> bool {
    !rest.starts_with(|char: char| char.is_alphanumeric() || "_-+@".contains(char))
}

impl Date {
    fn at(text: &str) -> Option<(Self, &str)> {
        let (year, rest) = digits(text, 4)?;
        let (month, rest) = digits(rest.strip_prefix('-')?, 2)?;
        let (day, rest) = digits(rest.strip_prefix('-')?, 2)?;
        let is_one = (1..=12).contains(&month) && (1..=31).contains(&day);
        is_one.then_some((Self { year, month, day }, rest))
    }
}

impl<'a> Time<'a> {
    fn at(text: &'a str) -> Option<(Self, &'a str)> {
        let (separator, rest) = text.split_at_checked(1)?;
        let (hour, rest) = digits(rest, 2)?;
        let (minute, mut rest) = digits(rest.strip_prefix(':')?, 2)?;
        let mut second = None;
        let mut fraction = "";
        if let Some(seconds) = rest.strip_prefix(':') {
            let (value, after) = digits(seconds, 2)?;
            second = Some(value);
            (fraction, rest) = split_fraction(after);
        }
        let (zone, rest) = split_zone(rest);
        let is_one = ["T", " "].contains(&separator)
            && hour < 24
            && minute < 60
            && second.is_none_or(|second| second < 60);
        let time = Self {
            separator,
            hour,
            minute,
            second,
            fraction,
            zone,
        };
        is_one.then_some((time, rest))
    }
}

/// Reads a number with exactly this many digits.
fn digits(text: &str, count: usize) -> Option<(u32, &str)> {
    let (number, rest) = text.split_at_checked(count)?;
    let are_digits = number.bytes().all(|byte| byte.is_ascii_digit());
    are_digits.then_some((number.parse().ok()?, rest))
}

fn split_fraction(text: &str) -> (&str, &str) {
    let Some(fraction) = text.strip_prefix('.') else {
        return ("", text);
    };
    let is_digit = |char: char| char.is_ascii_digit();
    let rest = fraction.trim_start_matches(is_digit);
    match fraction.len() - rest.len() {
        1..=9 => text.split_at(text.len() - rest.len()),
        _ => ("", text),
    }
}

/// Splits off a time zone: `Z`, ` UTC`, `+0200`, ` +02:00`, or nothing.
fn split_zone(text: &str) -> (&str, &str) {
    let zone = text.strip_prefix(' ').unwrap_or(text);
    let named = ["Z", "UTC", "GMT"]
        .iter()
        .find_map(|name| zone.strip_prefix(name));
    let offset = || {
        let (hours, rest) = digits(zone.strip_prefix(['+', '-'])?, 2)?;
        let minutes = digits(rest.strip_prefix(':').unwrap_or(rest), 2);
        let (minutes, rest) = minutes.unwrap_or((0, rest));
        (hours < 24 && minutes < 60).then_some(rest)
    };
    match named.or_else(offset) {
        Some(rest) => text.split_at(text.len() - rest.len()),
        None => ("", text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_to_its_end() {
        for text in [
            "2026-01-31",
            "2026-01-02T03:04",
            "2026-01-02T03:04:05Z",
            "2026-01-02T03:04:05.678+02:00",
            "2026-01-02 03:04:05 UTC",
            "2026-01-02 03:04:05 +0000",
            "2026-01-02T03:04:05-08",
        ] {
            assert!(Timestamp::read(text).is_some(), "{text}");
        }
        for text in [
            "2024-05-01 0151-2345678",
            "2024-05-01T15:12:34:56",
            "2024-05-01T15:99",
            "2024-05-01T01512345678",
            "2024-05-01-0151",
            "2024-05-01 12:00 +4915112345678",
            "2024-13-01",
            "2024-05-01T",
        ] {
            assert!(Timestamp::read(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_time_is_found_before_other_words() {
        let found = |text: &'static str| Timestamp::at(text).map(|(_, found)| found);
        assert_eq!(found("2024-05-01 0151-2345678"), Some("2024-05-01"));
        assert_eq!(found("1979-05-03, in Berlin"), Some("1979-05-03"));
        assert_eq!(found("1979-05-03T04:05:06Z."), Some("1979-05-03T04:05:06Z"));
        assert_eq!(found("1979-05-03.basil"), Some("1979-05-03"));
        assert_eq!(found("1979-05-0312"), None);
    }
}
