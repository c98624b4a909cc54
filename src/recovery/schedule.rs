//! The backoff: when a failed delivery runs again. `failed_attempt.rs` decides whether the delay of the schedule
//! applies.

use std::sync::Arc;
use std::time::Duration;

use crate::tasks_and_errors::random::random_fraction;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);

/// 70 hours in all: a weekend.
const DEFAULT: [Duration; 10] = [
    SECOND.saturating_mul(10),
    MINUTE,
    MINUTE.saturating_mul(5),
    MINUTE.saturating_mul(15),
    HOUR,
    HOUR.saturating_mul(3),
    HOUR.saturating_mul(6),
    HOUR.saturating_mul(12),
    HOUR.saturating_mul(24),
    HOUR.saturating_mul(24),
];

/// The longest delay, short enough that Postgres can add it to any time.
pub(super) const MAX_DELAY: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The delays between the attempts at a delivery.
#[derive(Clone, Debug)]
pub(crate) struct Schedule(Arc<[Duration]>);

impl Schedule {
    pub(crate) fn new(delays: impl IntoIterator<Item = Duration>) -> Self {
        Self(
            delays
                .into_iter()
                .map(|delay| delay.min(MAX_DELAY))
                .collect(),
        )
    }

    pub(crate) fn delays(&self) -> &[Duration] {
        &self.0
    }

    /// The delay after `retries` attempts of the schedule. It varies by a fifth, so that deliveries that failed
    /// together do not run together. `None` if no delay is left.
    pub(crate) fn delay_after(&self, retries: u32) -> Option<Duration> {
        let index = usize::try_from(retries).ok()?;
        let delay = self.0.get(index)?;
        Some(delay.mul_f64(0.8 + 0.4 * random_fraction()))
    }
}

impl Default for Schedule {
    fn default() -> Self {
        Self::new(DEFAULT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_lasts_for_a_weekend() {
        let schedule = Schedule::default();
        assert_eq!(schedule.0.iter().sum::<Duration>().as_secs() / 3600, 70);
        assert!(schedule.delay_after(9).is_some());
        assert!(schedule.delay_after(10).is_none());
    }

    #[test]
    fn delays_vary_by_a_fifth() {
        let schedule = Schedule::new([Duration::from_secs(100), Duration::ZERO, Duration::MAX]);
        for _ in 0..100 {
            let delay = schedule.delay_after(0).unwrap_or_default();
            assert!((80..=120).contains(&delay.as_secs()), "{delay:?}");
        }
        assert_eq!(schedule.delay_after(1), Some(Duration::ZERO));
        assert!(
            schedule
                .delay_after(2)
                .is_some_and(|delay| delay < 2 * MAX_DELAY)
        );
        assert_eq!(Schedule::new([]).delay_after(0), None);
    }
}
