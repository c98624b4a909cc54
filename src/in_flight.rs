//! Deliveries in flight in this process. The first attempt at a delivery runs, its duplicates
//! wait for it without a connection.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::delivery::DeliveryKey;
use crate::digest::Sha256Digest;
use crate::metrics::Metrics;

/// What at most one attempt of this process works on at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FlightKey {
    Delivery(DeliveryKey),
    /// Any delivery with this fingerprint, with the replay guard on.
    Fingerprint {
        tenant: Option<Arc<str>>,
        digest: Sha256Digest,
    },
}

/// The attempts of one layer that are in flight. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct InFlight(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Notified whenever nothing is in flight any more.
    idle: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Each attempt with the channel to its waiting duplicates, once there are any.
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

/// The result of [`InFlight::enter`].
pub(crate) enum Entered {
    /// No other attempt of this process works on the key until the guard is dropped.
    First(InFlightGuard),
    /// Another attempt has processed the delivery meanwhile.
    Processed,
    /// Another attempt was still running at the deadline.
    TimedOut,
}

impl InFlight {
    /// Waits until this attempt is the first, another one has succeeded, or `deadline`.
    pub(crate) async fn enter(
        &self,
        key: FlightKey,
        deadline: Instant,
        metrics: &Metrics,
    ) -> Entered {
        loop {
            let mut running = match self.lock().attempts.entry(key.clone()) {
                Entry::Occupied(mut entry) => entry
                    .get_mut()
                    .get_or_insert_with(|| watch::Sender::new(Progress::Running))
                    .subscribe(),
                Entry::Vacant(entry) => {
                    entry.insert(None);
                    return Entered::First(InFlightGuard {
                        in_flight: self.clone(),
                        key,
                        processed: false,
                    });
                }
            };
            let _waiting = metrics.waiting();
            let processed = running.wait_for(|progress| *progress == Progress::Processed);
            match tokio::time::timeout_at(deadline, processed).await {
                Ok(Ok(_)) => return Entered::Processed,
                // It failed. The waiter that is woken first runs next.
                Ok(Err(_)) => {}
                Err(_) => return Entered::TimedOut,
            }
        }
    }

    /// Whether they are those of the same layer.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Resolves when nothing is in flight.
    pub(crate) async fn drained(&self) {
        loop {
            // Registered before the check, so that a notification in between is not missed.
            let mut idle = pin!(self.0.idle.notified());
            idle.as_mut().enable();
            if self.lock().is_idle() {
                return;
            }
            idle.await;
        }
    }

    /// Counts a background task, for which [`drained`](Self::drained) waits, until the guard is
    /// dropped.
    pub(crate) fn background_task(&self) -> TaskGuard {
        self.lock().background_tasks += 1;
        TaskGuard(self.clone())
    }

    /// Removes an attempt or a task, and notifies if it was the last.
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

/// Keeps other attempts of this process waiting. When it is dropped, one of them runs.
#[derive(Debug)]
pub(crate) struct InFlightGuard {
    in_flight: InFlight,
    key: FlightKey,
    processed: bool,
}

impl InFlightGuard {
    /// Releases the waiting duplicates: the delivery is processed.
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::delivery::DeliveryId;

    fn key(id: &str) -> FlightKey {
        FlightKey::Delivery(DeliveryKey {
            tenant: None,
            id: DeliveryId::new(id.to_owned()),
        })
    }

    fn metrics() -> Metrics {
        Metrics::new("test".into(), "acme".into())
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(50)
    }

    fn far() -> Instant {
        Instant::now() + Duration::from_secs(3600)
    }

    #[tokio::test]
    async fn the_first_runs_and_its_duplicates_learn_of_its_success() {
        let in_flight = InFlight::default();
        let Entered::First(first) = in_flight.enter(key("a"), far(), &metrics()).await else {
            unreachable!("no other attempt is running");
        };
        assert!(matches!(
            in_flight.enter(key("b"), far(), &metrics()).await,
            Entered::First(_)
        ));
        assert!(matches!(
            in_flight.enter(key("a"), soon(), &metrics()).await,
            Entered::TimedOut
        ));
        let waiting = tokio::spawn({
            let in_flight = in_flight.clone();
            async move {
                matches!(
                    in_flight.enter(key("a"), far(), &metrics()).await,
                    Entered::Processed
                )
            }
        });
        tokio::task::yield_now().await;
        first.processed();
        assert!(waiting.await.is_ok_and(|processed| processed));
        assert!(in_flight.lock().is_idle());
    }

    #[tokio::test]
    async fn g7_after_a_failure_exactly_one_waiter_runs() {
        let in_flight = InFlight::default();
        let Entered::First(first) = in_flight.enter(key("a"), far(), &metrics()).await else {
            unreachable!("no other attempt is running");
        };
        let (entered, mut results) = tokio::sync::mpsc::unbounded_channel();
        for _ in 0..10 {
            let (in_flight, entered) = (in_flight.clone(), entered.clone());
            tokio::spawn(async move {
                let _ = entered.send(in_flight.enter(key("a"), far(), &metrics()).await);
            });
        }
        tokio::task::yield_now().await;
        drop(first);
        let Some(Entered::First(second)) = results.recv().await else {
            unreachable!("a waiter enters before any other returns");
        };
        tokio::task::yield_now().await;
        assert!(results.try_recv().is_err());
        second.processed();
        for _ in 0..9 {
            assert!(matches!(results.recv().await, Some(Entered::Processed)));
        }
        assert!(in_flight.lock().is_idle());
    }
}
