//! How old a signature may be.

use std::time::{Duration, SystemTime};

use super::SignatureError;
use super::timestamp::whole_seconds;

/// How far the time of signing may be from the time of receipt.
///
/// Both limits are inclusive, in whole seconds: with 300 seconds, a signature that is exactly 300 seconds old
/// passes. The tolerance only applies to schemes that sign a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tolerance {
    past: Option<Duration>,
    future: Option<Duration>,
}

impl Tolerance {
    /// At most `limit` old, and any time in the future.
    pub const fn past_only(limit: Duration) -> Self {
        Self {
            past: Some(limit),
            future: None,
        }
    }

    /// At most `limit` old, and at most `limit` in the future.
    pub const fn two_sided(limit: Duration) -> Self {
        Self {
            past: Some(limit),
            future: Some(limit),
        }
    }

    /// Any time. A captured request then stays valid forever, and only the delivery id prevents a replay.
    pub const fn unlimited() -> Self {
        Self {
            past: None,
            future: None,
        }
    }

    /// Replaces each limit that is set: for the past, for the future, or both. If no limit is set, sets both limits.
    #[must_use]
    pub const fn with_limit(self, limit: Duration) -> Self {
        match self.future {
            None if self.past.is_some() => Self::past_only(limit),
            None | Some(_) => Self::two_sided(limit),
        }
    }

    /// How old a signature may be. `None` means any age.
    pub const fn past(self) -> Option<Duration> {
        self.past
    }

    pub(crate) fn check(self, signed: SystemTime, now: SystemTime) -> Result<(), SignatureError> {
        // Most providers sign whole seconds, and their SDKs compare whole seconds.
        let (signed, now) = (whole_seconds(signed), whole_seconds(now));
        match now.duration_since(signed) {
            Ok(age) => match self.past {
                Some(limit) if age > limit => Err(SignatureError::TooOld { age, limit }),
                Some(_) | None => Ok(()),
            },
            Err(error) => match (error.duration(), self.future) {
                (ahead, Some(limit)) if ahead > limit => {
                    Err(SignatureError::TooNew { ahead, limit })
                }
                _ => Ok(()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerance_is_inclusive_in_whole_seconds() {
        let signed = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
        let at = |millis| SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
        let limit = Duration::from_secs(300);

        let too_old = Err(SignatureError::TooOld {
            age: Duration::from_secs(301),
            limit,
        });
        let too_new = Err(SignatureError::TooNew {
            ahead: Duration::from_secs(301),
            limit,
        });

        let past = Tolerance::past_only(limit);
        assert_eq!(past.check(signed, at(1_300_999)), Ok(()));
        assert_eq!(past.check(signed, at(1_301_000)), too_old);
        assert_eq!(past.check(signed, at(0)), Ok(()));

        let both = Tolerance::two_sided(limit);
        assert_eq!(both.check(signed, at(1_301_000)), too_old);
        assert_eq!(both.check(signed, at(700_000)), Ok(()));
        assert_eq!(both.check(signed, at(699_999)), too_new);

        let half_past = at(1_000_500);
        assert_eq!(both.check(half_past, at(1_300_900)), Ok(()));
        assert_eq!(both.check(half_past, at(700_200)), Ok(()));

        assert_eq!(Tolerance::unlimited().check(signed, at(0)), Ok(()));
        assert_eq!(
            Tolerance::unlimited().check(signed, at(u64::from(u32::MAX))),
            Ok(())
        );
    }
}
