//! The state that the handles of a recovery share with the layers. It includes the slots, which limit how many
//! attempts may run in the background.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{AcquireError, Notify, OwnedSemaphorePermit, Semaphore};

use super::joined_layers::JoinedLayers;
use super::liveness::Liveness;
use super::reconciled_lists::ReconciledLists;
use super::served_endpoints::Endpoints;
use crate::transaction::Store;

/// The state that the handles and the layers share.
pub(super) struct Shared {
    pub(super) store: Store,
    pub(super) liveness: Liveness,
    pub(super) endpoints: Endpoints,
    pub(super) reconciled_lists: ReconciledLists,
    pub(super) joined_layers: JoinedLayers,
    /// A slot for each attempt that may run in the background at the same time, in recovery and in all layers
    /// together.
    pub(super) slots: Arc<Semaphore>,
    pub(super) concurrency: Mutex<usize>,
    /// Whether another process runs the deliveries that this one keeps.
    pub(super) elsewhere: bool,
    pub(super) is_spawned: AtomicBool,
    pub(super) has_kept: AtomicBool,
    /// Notified when something may be due.
    pub(super) news: Notify,
}

impl Shared {
    /// Whether this process runs the deliveries that it keeps.
    pub(super) fn is_spawned(&self) -> bool {
        self.is_spawned.load(Ordering::Relaxed)
    }

    pub(super) fn is_elsewhere(&self) -> bool {
        self.elsewhere
    }

    /// All slots, once nothing runs in the background.
    pub(super) async fn all_slots(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        let concurrency = *self
            .concurrency
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let all = u32::try_from(concurrency).unwrap_or(u32::MAX);
        self.slots.clone().acquire_many_owned(all).await
    }
}
