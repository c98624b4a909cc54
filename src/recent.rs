//! A bounded memory of deliveries that this process has lately committed.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::delivery::DeliveryId;

/// The ids of the latest commits, at most so many and for at most so long. Clones share
/// them.
#[derive(Clone, Debug)]
pub(crate) struct Recent {
    capacity: usize,
    time: Duration,
    ids: Arc<Mutex<Ids>>,
}

#[derive(Debug, Default)]
struct Ids {
    known: HashSet<DeliveryId>,
    /// When each was committed, the oldest first.
    order: VecDeque<(Instant, DeliveryId)>,
}

impl Recent {
    pub(crate) fn new(capacity: usize, time: Duration) -> Self {
        Self {
            capacity,
            time,
            ids: Arc::default(),
        }
    }

    /// Remembers an id whose commit has been confirmed.
    pub(crate) fn remember(&self, id: &DeliveryId) {
        self.with(|ids| {
            // It may have been forgotten in the database, and processed again.
            if self.capacity == 0 || ids.known.contains(id) {
                return;
            }
            if ids.order.len() >= self.capacity
                && let Some((_, oldest)) = ids.order.pop_front()
            {
                ids.known.remove(&oldest);
            }
            ids.known.insert(id.clone());
            ids.order.push_back((Instant::now(), id.clone()));
        });
    }

    pub(crate) fn contains(&self, id: &DeliveryId) -> bool {
        self.with(|ids| ids.known.contains(id))
    }

    /// Looks at the ids after forgetting those whose time is up.
    fn with<T>(&self, look: impl FnOnce(&mut Ids) -> T) -> T {
        // Nothing panics while it holds the lock.
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some((committed, _)) = ids.order.front()
            && committed.elapsed() >= self.time
        {
            if let Some((_, expired)) = ids.order.pop_front() {
                ids.known.remove(&expired);
            }
        }
        look(&mut ids)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(id: u32) -> DeliveryId {
        DeliveryId::new(id.to_string())
    }

    #[test]
    fn the_oldest_makes_room() {
        let recent = Recent::new(2, Duration::from_secs(60));
        for n in [1, 2, 2, 3] {
            recent.remember(&id(n));
        }
        assert!(!recent.contains(&id(1)));
        assert!(recent.contains(&id(2)) && recent.contains(&id(3)));
        assert_eq!(
            recent.with(|ids| (ids.known.len(), ids.order.len())),
            (2, 2)
        );

        let none = Recent::new(0, Duration::from_secs(60));
        none.remember(&id(1));
        assert!(!none.contains(&id(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn it_forgets_in_time() {
        let recent = Recent::new(10, Duration::from_secs(60));
        recent.remember(&id(1));
        tokio::time::advance(Duration::from_secs(59)).await;
        recent.remember(&id(2));
        assert!(recent.contains(&id(1)));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!recent.contains(&id(1)));
        assert!(recent.contains(&id(2)));
        assert_eq!(
            recent.with(|ids| (ids.known.len(), ids.order.len())),
            (1, 1)
        );
    }
}
