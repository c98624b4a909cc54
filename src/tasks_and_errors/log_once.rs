//! Logs something once, no matter how often it happens, because a line for each request would hide other lines.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Checks whether a key occurs for the first time. The number of keys is bounded, because senders may make them up.
#[derive(Debug)]
pub(crate) struct LogOnce<K = ()> {
    /// The maximum number of keys that are logged.
    most: usize,
    /// After this time, each key is logged again.
    again_after: Option<Duration>,
    logged: Mutex<Logged<K>>,
    /// Whether the maximum is reached, so that nothing more is logged. Without this flag, each request would wait for
    /// the lock.
    is_over: AtomicBool,
}

#[derive(Debug)]
struct Logged<K> {
    since: Option<Instant>,
    keys: BTreeSet<K>,
}

impl<K: Ord> LogOnce<K> {
    /// Logs each key once, and at most `most` keys.
    pub(crate) fn of(most: usize) -> Self {
        Self {
            most,
            again_after: None,
            logged: Mutex::new(Logged {
                since: None,
                keys: BTreeSet::new(),
            }),
            is_over: AtomicBool::new(false),
        }
    }

    /// Logs all keys again once this time has passed since the first one was logged.
    pub(crate) fn again_after(self, time: Duration) -> Self {
        Self {
            again_after: Some(time),
            ..self
        }
    }

    /// Whether to log this key now.
    pub(crate) fn is_first(&self, key: K) -> bool {
        if self.is_over() {
            return false;
        }
        // Nothing panics while it holds the lock.
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new_time =
            |since: Instant| self.again_after.is_some_and(|time| since.elapsed() >= time);
        if logged.since.is_none_or(is_new_time) {
            logged.since = Some(Instant::now());
            logged.keys.clear();
        }
        let is_first = logged.keys.len() < self.most && logged.keys.insert(key);
        if logged.keys.len() >= self.most && self.again_after.is_none() {
            self.end();
        }
        is_first
    }

    /// Whether nothing more is logged.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Logs nothing more.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_is_logged_once_and_a_bounded_number_of_them() {
        let once = LogOnce::of(3);
        assert!(once.is_first("a"));
        assert!(!once.is_first("a"));
        assert!(once.is_first("b") && once.is_first("c"));
        assert!(once.is_over());
        assert!(!once.is_first("d"));

        let ended = LogOnce::of(1);
        ended.end();
        assert!(!ended.is_first(()));
    }

    #[tokio::test(start_paused = true)]
    async fn y5_each_tenant_is_logged_once_a_day_and_a_hundred_at_most() {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        let once = LogOnce::of(100).again_after(DAY);
        assert!(once.is_first("acme".to_owned()));
        assert!(!once.is_first("acme".to_owned()));
        let logged = (0..1000).filter(|number: &i32| once.is_first(number.to_string()));
        assert_eq!(logged.count(), 99);
        tokio::time::advance(DAY - Duration::from_secs(1)).await;
        assert!(!once.is_first("acme".to_owned()));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(once.is_first("acme".to_owned()));
        assert!(once.is_first("999".to_owned()));
        assert!(!once.is_first("acme".to_owned()));
    }
}
