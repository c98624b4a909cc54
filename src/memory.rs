//! A memory that is bounded in number and in time.

use std::borrow::Borrow;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::time::Instant;

/// The latest entries, at most so many and each for at most so long. Clones share them.
pub(crate) struct Memory<K, V> {
    capacity: usize,
    time: Duration,
    entries: Arc<Mutex<Entries<K, V>>>,
}

struct Entries<K, V> {
    known: HashMap<K, V>,
    /// When each was put in, the oldest first. One that has been taken out stays here
    /// until its time is up.
    order: VecDeque<(Instant, K)>,
    /// How many have been taken out.
    removals: u64,
}

impl<K: Clone + Eq + Hash, V> Entries<K, V> {
    fn insert(&mut self, key: K, value: V, capacity: usize) {
        if capacity == 0 {
            return;
        }
        if let Some(known) = self.known.get_mut(&key) {
            *known = value;
            return;
        }
        if self.order.len() >= capacity
            && let Some((_, oldest)) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        self.known.insert(key.clone(), value);
        self.order.push_back((Instant::now(), key));
    }
}

impl<K: Clone + Eq + Hash, V: Clone> Memory<K, V> {
    pub(crate) fn new(capacity: usize, time: Duration) -> Self {
        Self {
            capacity,
            time,
            entries: Arc::new(Mutex::new(Entries {
                known: HashMap::new(),
                order: VecDeque::new(),
                removals: 0,
            })),
        }
    }

    /// Puts an entry in. One that is known already keeps its time.
    pub(crate) fn insert(&self, key: K, value: V) {
        self.with(|entries| entries.insert(key, value, self.capacity));
    }

    /// For `insert_unless_removed`.
    pub(crate) fn removals(&self) -> u64 {
        self.with(|entries| entries.removals)
    }

    /// Puts an entry in, unless any was taken out since `removals` were counted: it may have
    /// been meant.
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
        self.with(|entries| entries.known.get(key).cloned())
    }

    pub(crate) fn downgrade(&self) -> WeakMemory<K, V> {
        WeakMemory(Arc::downgrade(&self.entries))
    }

    /// Looks at the entries after forgetting those whose time is up.
    fn with<T>(&self, look: impl FnOnce(&mut Entries<K, V>) -> T) -> T {
        // Nothing panics while it holds the lock.
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some((since, _)) = entries.order.front()
            && since.elapsed() >= self.time
        {
            if let Some((_, expired)) = entries.order.pop_front() {
                entries.known.remove(&expired);
            }
        }
        look(&mut entries)
    }
}

/// A memory as long as somebody uses it.
pub(crate) struct WeakMemory<K, V>(Weak<Mutex<Entries<K, V>>>);

impl<K: Eq + Hash, V> WeakMemory<K, V> {
    pub(crate) fn is_in_use(&self) -> bool {
        self.0.strong_count() > 0
    }

    pub(crate) fn remove(&self, key: &K) {
        if let Some(entries) = self.0.upgrade() {
            let mut entries = entries.lock().unwrap_or_else(PoisonError::into_inner);
            entries.known.remove(key);
            entries.removals += 1;
        }
    }
}

impl<K, V> Clone for Memory<K, V> {
    fn clone(&self) -> Self {
        Self {
            capacity: self.capacity,
            time: self.time,
            entries: self.entries.clone(),
        }
    }
}

impl<K, V> fmt::Debug for Memory<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory")
            .field("capacity", &self.capacity)
            .field("time", &self.time)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes<K: Clone + Eq + Hash, V: Clone>(memory: &Memory<K, V>) -> (usize, usize) {
        memory.with(|entries| (entries.known.len(), entries.order.len()))
    }

    #[test]
    fn the_oldest_makes_room() {
        let memory = Memory::new(2, Duration::from_secs(60));
        for (key, value) in [(1, 'a'), (2, 'b'), (2, 'c'), (3, 'd')] {
            memory.insert(key, value);
        }
        assert_eq!(memory.get(&1), None);
        assert_eq!((memory.get(&2), memory.get(&3)), (Some('c'), Some('d')));
        assert_eq!(sizes(&memory), (2, 2));

        let none = Memory::new(0, Duration::from_secs(60));
        none.insert(1, 'a');
        assert_eq!(none.get(&1), None);
    }

    #[test]
    fn what_is_taken_out_can_be_put_in_again() {
        let memory = Memory::new(2, Duration::from_secs(60));
        memory.insert(1, 'a');
        let weak = memory.downgrade();
        let removals = memory.removals();
        weak.remove(&1);
        assert_eq!(memory.get(&1), None);
        memory.insert_unless_removed(1, 'a', removals);
        assert_eq!(memory.get(&1), None);
        memory.insert_unless_removed(1, 'b', memory.removals());
        assert_eq!(memory.get(&1), Some('b'));
        assert!(weak.is_in_use());
        drop(memory);
        assert!(!weak.is_in_use());
        weak.remove(&1);
    }

    #[tokio::test(start_paused = true)]
    async fn it_forgets_in_time() {
        let memory = Memory::new(10, Duration::from_secs(60));
        memory.insert(1, 'a');
        tokio::time::advance(Duration::from_secs(59)).await;
        memory.insert(1, 'b');
        memory.insert(2, 'c');
        assert_eq!(memory.get(&1), Some('b'));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(memory.get(&1), None);
        assert_eq!(memory.get(&2), Some('c'));
        assert_eq!(sizes(&memory), (1, 1));
    }
}
