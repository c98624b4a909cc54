//! A map whose entries expire, bounded in number.

use std::borrow::Borrow;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::time::Instant;

/// Holds the latest `capacity` entries, each for at most `ttl`. Clones share the entries.
pub(crate) struct ExpiringMap<K, V> {
    capacity: usize,
    ttl: Duration,
    entries: Arc<Mutex<Entries<K, V>>>,
}

struct Entries<K, V> {
    values: HashMap<K, V>,
    /// When each key was inserted, oldest first. A removed key stays here until it expires.
    order: VecDeque<(Instant, K)>,
    /// How many keys have been removed.
    removals: u64,
}

impl<K: Clone + Eq + Hash, V> Entries<K, V> {
    fn insert(&mut self, key: K, value: V, capacity: usize) {
        if capacity == 0 {
            return;
        }
        if let Some(present) = self.values.get_mut(&key) {
            *present = value;
            return;
        }
        if self.order.len() >= capacity
            && let Some((_, oldest)) = self.order.pop_front()
        {
            self.values.remove(&oldest);
        }
        self.values.insert(key.clone(), value);
        self.order.push_back((Instant::now(), key));
    }
}

impl<K: Clone + Eq + Hash, V: Clone> ExpiringMap<K, V> {
    pub(crate) fn new(capacity: usize, ttl: Duration) -> Self {
        Self {
            capacity,
            ttl,
            entries: Arc::new(Mutex::new(Entries {
                values: HashMap::new(),
                order: VecDeque::new(),
                removals: 0,
            })),
        }
    }

    /// Inserts an entry. A key that is present gets the new value and keeps its expiry.
    pub(crate) fn insert(&self, key: K, value: V) {
        self.with(|entries| entries.insert(key, value, self.capacity));
    }

    /// The number of removals so far, for `insert_unless_removed`.
    pub(crate) fn removals(&self) -> u64 {
        self.with(|entries| entries.removals)
    }

    /// Inserts an entry unless a key was removed since `removals` was read: it may have been
    /// this key.
    pub(crate) fn insert_unless_removed(&self, key: K, value: V, removals: u64) {
        self.with(|entries| {
            if entries.removals == removals {
                entries.insert(key, value, self.capacity);
            }
        });
    }

    pub(crate) fn get<Q>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.with(|entries| entries.values.get(key).cloned())
    }

    pub(crate) fn downgrade(&self) -> WeakExpiringMap<K, V> {
        WeakExpiringMap(Arc::downgrade(&self.entries))
    }

    /// Accesses the entries after dropping the expired ones.
    fn with<T>(&self, access: impl FnOnce(&mut Entries<K, V>) -> T) -> T {
        // Nothing panics while it holds the lock.
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some((since, _)) = entries.order.front()
            && since.elapsed() >= self.ttl
        {
            if let Some((_, expired)) = entries.order.pop_front() {
                entries.values.remove(&expired);
            }
        }
        access(&mut entries)
    }
}

/// A reference that does not keep the entries alive.
pub(crate) struct WeakExpiringMap<K, V>(Weak<Mutex<Entries<K, V>>>);

impl<K: Eq + Hash, V> WeakExpiringMap<K, V> {
    pub(crate) fn is_in_use(&self) -> bool {
        self.0.strong_count() > 0
    }

    pub(crate) fn remove(&self, key: &K) {
        if let Some(entries) = self.0.upgrade() {
            let mut entries = entries.lock().unwrap_or_else(PoisonError::into_inner);
            entries.values.remove(key);
            entries.removals += 1;
        }
    }
}

impl<K, V> Clone for ExpiringMap<K, V> {
    fn clone(&self) -> Self {
        Self {
            capacity: self.capacity,
            ttl: self.ttl,
            entries: self.entries.clone(),
        }
    }
}

impl<K, V> fmt::Debug for ExpiringMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExpiringMap")
            .field("capacity", &self.capacity)
            .field("ttl", &self.ttl)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes<K: Clone + Eq + Hash, V: Clone>(map: &ExpiringMap<K, V>) -> (usize, usize) {
        map.with(|entries| (entries.values.len(), entries.order.len()))
    }

    #[test]
    fn the_oldest_makes_room() {
        let map = ExpiringMap::new(2, Duration::from_secs(60));
        for (key, value) in [(1, 'a'), (2, 'b'), (2, 'c'), (3, 'd')] {
            map.insert(key, value);
        }
        assert_eq!(map.get(&1), None);
        assert_eq!((map.get(&2), map.get(&3)), (Some('c'), Some('d')));
        assert_eq!(sizes(&map), (2, 2));

        let none = ExpiringMap::new(0, Duration::from_secs(60));
        none.insert(1, 'a');
        assert_eq!(none.get(&1), None);
    }

    #[test]
    fn a_removed_key_can_be_inserted_again() {
        let map = ExpiringMap::new(2, Duration::from_secs(60));
        map.insert(1, 'a');
        let weak = map.downgrade();
        let removals = map.removals();
        weak.remove(&1);
        assert_eq!(map.get(&1), None);
        map.insert_unless_removed(1, 'a', removals);
        assert_eq!(map.get(&1), None);
        map.insert_unless_removed(1, 'b', map.removals());
        assert_eq!(map.get(&1), Some('b'));
        assert!(weak.is_in_use());
        drop(map);
        assert!(!weak.is_in_use());
        weak.remove(&1);
    }

    #[tokio::test(start_paused = true)]
    async fn entries_expire() {
        let map = ExpiringMap::new(10, Duration::from_secs(60));
        map.insert(1, 'a');
        tokio::time::advance(Duration::from_secs(59)).await;
        map.insert(1, 'b');
        map.insert(2, 'c');
        assert_eq!(map.get(&1), Some('b'));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(map.get(&1), None);
        assert_eq!(map.get(&2), Some('c'));
        assert_eq!(sizes(&map), (1, 1));
    }
}
