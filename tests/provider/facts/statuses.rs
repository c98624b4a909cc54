//! The answers of the layer that make a provider deliver again.

use std::fmt;
use std::ops::RangeInclusive;

use serde::Deserialize;

/// The answers after which a provider delivers again by itself.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RedeliveredAfter {
    Never,
    /// Each status that is not a success.
    Failures,
    Only(Vec<Statuses>),
    But(Vec<Statuses>),
    Unknown,
}

impl RedeliveredAfter {
    /// Whether the provider delivers again after a failure with this status. `None` if that is not
    /// known.
    pub fn contains(&self, status: u16) -> Option<bool> {
        let among = |ranges: &[Statuses]| ranges.iter().any(|range| range.0.contains(&status));
        match self {
            Self::Never => Some(false),
            Self::Failures => Some(true),
            Self::Only(ranges) => Some(among(ranges)),
            Self::But(ranges) => Some(!among(ranges)),
            Self::Unknown => None,
        }
    }
}

/// A status or a range, such as `429` or `500-599`.
#[derive(Deserialize)]
#[serde(try_from = "String")]
pub struct Statuses(RangeInclusive<u16>);

impl TryFrom<String> for Statuses {
    type Error = std::num::ParseIntError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let (first, last) = text.split_once('-').unwrap_or((&text, &text));
        Ok(Self(first.parse()?..=last.parse()?))
    }
}

impl fmt::Display for Statuses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = (self.0.start(), self.0.end());
        if first == last {
            write!(f, "{first}")
        } else {
            write!(f, "{first} to {last}")
        }
    }
}
