//! A map whose entries expire, bounded in number.

use std::borrow::Borrow;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
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
    /// When each key was inserted, oldest first.
    order: VecDeque<(Instant, K)>,
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
            })),
        }
    }

    /// Inserts an entry. If the key is present, its entry gets the new value but keeps its expiry.
    pub(crate) fn insert(&self, key: K, value: V) {
        self.with(|entries| entries.insert(key, value, self.capacity));
    }

    pub(crate) fn get<Q>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.with(|entries| entries.values.get(key).cloned())
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
