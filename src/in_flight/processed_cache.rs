//! The deliveries that this process has recently committed, for layers with `cache_processed`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::delivery::DeliveryKey;
use crate::expiring_map::{ExpiringMap, WeakExpiringMap};

/// The latest commits of one layer in this process.
#[derive(Clone, Debug)]
pub(crate) struct ProcessedCache(ExpiringMap<DeliveryKey, ()>);

/// The caches of all layers in this process, so that `forget` reaches them.
static ALL: Mutex<Vec<(Endpoint, WeakExpiringMap<DeliveryKey, ()>)>> = Mutex::new(Vec::new());

type Endpoint = Arc<str>;

/// The number of removals before a commit was sent.
pub(crate) struct BeforeCommit(u64);

impl ProcessedCache {
    pub(crate) fn new(endpoint: Arc<str>, capacity: usize, ttl: Duration) -> Self {
        let map = ExpiringMap::new(capacity, ttl);
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(_, map)| map.is_in_use());
        all.push((endpoint, map.downgrade()));
        Self(map)
    }

    /// To be called before the commit is sent.
    pub(crate) fn before_commit(&self) -> BeforeCommit {
        BeforeCommit(self.0.removals())
    }

    /// Adds a delivery whose commit is confirmed, unless one was removed since the commit was
    /// sent: `forget` may have deleted the row before the confirmation arrived.
    pub(crate) fn insert(&self, key: DeliveryKey, BeforeCommit(removals): BeforeCommit) {
        self.0.insert_unless_removed(key, (), removals);
    }

    pub(crate) fn contains(&self, key: &DeliveryKey) -> bool {
        self.0.get(key).is_some()
    }
}

/// Removes a delivery from the caches of all layers of this endpoint in this process.
pub(crate) fn forget(endpoint: &str, key: &DeliveryKey) {
    let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    for (_, map) in all.iter().filter(|(of, _)| **of == *endpoint) {
        map.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::DeliveryId;

    /// `forget` deletes the row between the commit and its confirmation.
    #[test]
    fn a_delivery_forgotten_before_its_confirmation_is_not_cached() {
        let cache = ProcessedCache::new("forgetful".into(), 10, Duration::from_secs(60));
        let key = || DeliveryKey {
            tenant: None,
            id: DeliveryId::new("a".to_owned()),
        };
        let before_commit = cache.before_commit();
        forget("forgetful", &key());
        cache.insert(key(), before_commit);
        assert!(!cache.contains(&key()));

        cache.insert(key(), cache.before_commit());
        assert!(cache.contains(&key()));
    }
}
