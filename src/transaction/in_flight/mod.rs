//! Deliveries in flight in this process. The first attempt at a delivery runs, and its duplicates wait for it without
//! holding a connection.
//!
//! A guard ([`InFlightGuard`]) keeps other attempts with the same key waiting until it is dropped.

mod wait;

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use crate::provider::delivery::DeliveryKey;
use crate::provider::digest::Sha256Digest;
pub(crate) use wait::Entered;

/// A key that at most one attempt of this process works on at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FlightKey {
    Delivery(DeliveryKey),
    /// Any delivery with this fingerprint, if the replay guard is on.
    Fingerprint {
        tenant: Option<Arc<str>>,
        digest: Sha256Digest,
    },
    /// Any delivery about this object (such as a subscription), if deliveries of one object run one at a time.
    Object {
        tenant: Option<Arc<str>>,
        object: Arc<str>,
    },
}

/// The attempts of one layer that are in flight. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct InFlight(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Notified whenever nothing is left in flight.
    idle: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// The key of each attempt, with the channel to the waiting duplicates once there are any.
    attempts: HashMap<FlightKey, Option<watch::Sender<Progress>>>,
    background_tasks: usize,
}

impl State {
    fn is_idle(&self) -> bool {
        self.attempts.is_empty() && self.background_tasks == 0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Running,
    Processed,
}

impl InFlight {
    /// Whether this and `other` belong to the same layer, or to clones of it.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Resolves when nothing is in flight.
    pub(crate) async fn drained(&self) {
        loop {
            // The wait starts before the check, so that a notification in between is not missed.
            let mut idle = pin!(self.0.idle.notified());
            idle.as_mut().enable();
            if self.lock().is_idle() {
                return;
            }
            idle.await;
        }
    }

    /// Counts a background task until the returned guard is dropped. [`drained`](Self::drained) waits for the task.
    pub(crate) fn background_task(&self) -> TaskGuard {
        self.lock().background_tasks += 1;
        TaskGuard(self.clone())
    }

    /// Removes an attempt or a task. If nothing else is in flight, wakes the calls of `drained` that wait.
    fn release<T>(&self, remove: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let removed = remove(&mut state);
        if state.is_idle() {
            self.0.idle.notify_waiters();
        }
        removed
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps other attempts with the same key in this process waiting. When the guard is dropped, one of these attempts
/// runs.
#[derive(Debug)]
pub(crate) struct InFlightGuard {
    in_flight: InFlight,
    key: FlightKey,
    processed: bool,
}

impl InFlightGuard {
    /// Releases the waiting duplicates, because the delivery is processed.
    pub(crate) fn processed(mut self) {
        self.processed = true;
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        let waiting = self
            .in_flight
            .release(|state| state.attempts.remove(&self.key).flatten());
        // The key is removed by now, so the waiter that is woken first can enter.
        if let Some(waiting) = waiting
            && self.processed
        {
            waiting.send_replace(Progress::Processed);
        }
    }
}

/// A background task that has not finished.
#[derive(Debug)]
pub(crate) struct TaskGuard(InFlight);

impl Drop for TaskGuard {
    fn drop(&mut self) {
        self.0.release(|state| state.background_tasks -= 1);
    }
}
