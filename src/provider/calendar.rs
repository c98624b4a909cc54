//! Dates of the Gregorian calendar, by Howard Hinnant's algorithms, in which years start in March.

/// The days from 1970-01-01 to a date. `None` if there is no such date, such as a 30th of February.
pub(crate) fn days_since_epoch(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let from_march = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (from_march.div_euclid(400), from_march.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    (date(days) == [year, month, day]).then_some(days)
}

/// The year, month and day that are `days` days after 1970-01-01.
pub(crate) fn date(days: i64) -> [i64; 3] {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    [year + era * 400 + i64::from(month <= 2), month, day]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_are_each_other_s_reverse() {
        assert_eq!(days_since_epoch(1970, 1, 1), Some(0));
        assert_eq!(days_since_epoch(2000, 3, 1), Some(11_017));
        // From 1600 to 2500.
        for days in -135_140..193_900 {
            let [year, month, day] = date(days);
            assert_eq!(days_since_epoch(year, month, day), Some(days));
        }
        for [year, month, day] in [
            [2023, 2, 29],
            [2100, 2, 29],
            [2024, 2, 30],
            [2024, 4, 31],
            [2024, 0, 1],
            [2024, 13, 1],
            [2024, 1, 0],
            [2024, 1, 32],
        ] {
            assert_eq!(days_since_epoch(year, month, day), None);
        }
    }
}
