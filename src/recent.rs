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

/// How much had been forgotten before a commit was sent.
pub(crate) struct BeforeCommit(u64);

impl Recent {
    pub(crate) fn new(endpoint: Arc<str>, capacity: usize, time: Duration) -> Self {
        let memory = Memory::new(capacity, time);
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(_, memory)| memory.is_in_use());
        all.push((endpoint, memory.downgrade()));
        Self(memory)
    }

    /// To be asked for before the commit is sent.
    pub(crate) fn before_commit(&self) -> BeforeCommit {
        BeforeCommit(self.0.removals())
    }

    /// Remembers a delivery whose commit has been confirmed, unless one was forgotten since it
    /// was sent: `forget` may have deleted the row before the confirmation was here.
    pub(crate) fn insert(&self, key: DeliveryKey, BeforeCommit(removals): BeforeCommit) {
        self.0.insert_unless_removed(key, (), removals);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::DeliveryId;

    /// `forget` deletes the row between the commit and its confirmation.
    #[test]
    fn what_is_forgotten_before_its_confirmation_is_here_is_not_remembered() {
        let recent = Recent::new("forgetful".into(), 10, Duration::from_secs(60));
        let key = || DeliveryKey {
            tenant: None,
            id: DeliveryId::new("a".to_owned()),
        };
        let before_commit = recent.before_commit();
        forget("forgetful", &key());
        recent.insert(key(), before_commit);
        assert!(!recent.contains(&key()));

        recent.insert(key(), recent.before_commit());
        assert!(recent.contains(&key()));
    }
}
