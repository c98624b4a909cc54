//! The deliveries that this process has lately committed, for layers that remember them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::delivery::DeliveryKey;
use crate::memory::{Memory, WeakMemory};

/// The latest commits of one endpoint in this process.
#[derive(Clone, Debug)]
pub(crate) struct Recent(Memory<DeliveryKey, ()>);

/// All there are in this process, so that `forget` reaches them.
static ALL: Mutex<Vec<(Endpoint, WeakMemory<DeliveryKey, ()>)>> = Mutex::new(Vec::new());

type Endpoint = Arc<str>;

impl Recent {
    pub(crate) fn new(endpoint: Arc<str>, capacity: usize, time: Duration) -> Self {
        let memory = Memory::new(capacity, time);
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(_, memory)| memory.is_in_use());
        all.push((endpoint, memory.downgrade()));
        Self(memory)
    }

    pub(crate) fn insert(&self, key: DeliveryKey) {
        self.0.insert(key, ());
    }

    pub(crate) fn contains(&self, key: &DeliveryKey) -> bool {
        self.0.get(key).is_some()
    }
}

/// Forgets a delivery in all layers of this process that have this endpoint.
pub(crate) fn forget(endpoint: &str, key: &DeliveryKey) {
    let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    for (_, memory) in all.iter().filter(|(of, _)| **of == *endpoint) {
        memory.remove(key);
    }
}
