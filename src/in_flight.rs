//! Deliveries in flight in this process: one leads, its duplicates wait for it without a
//! connection.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::delivery::DeliveryId;

/// The deliveries of one endpoint that are in flight here. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct InFlight(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    leads: Mutex<Leads>,
    /// Notified whenever the last lead has ended.
    idle: Notify,
}

type Leads = HashMap<DeliveryId, watch::Receiver<Progress>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Running,
    Processed,
}

/// What came of waiting for one's turn.
pub(crate) enum Turn {
    /// This attempt leads: nobody else in this process is at the delivery.
    Lead(Lead),
    /// Another attempt has processed the delivery meanwhile.
    Processed,
    /// Another attempt was still at it when the time was up.
    TimeUp,
}

impl InFlight {
    /// Waits until this attempt leads, another one has succeeded, or `deadline`.
    pub(crate) async fn turn(&self, id: &DeliveryId, deadline: Instant) -> Turn {
        loop {
            let mut ahead = match self.lock().entry(id.clone()) {
                Entry::Occupied(entry) => entry.get().clone(),
                Entry::Vacant(entry) => {
                    let (progress, follower) = watch::channel(Progress::Running);
                    entry.insert(follower);
                    return Turn::Lead(Lead {
                        in_flight: self.clone(),
                        id: id.clone(),
                        progress,
                    });
                }
            };
            let processed = ahead.wait_for(|progress| *progress == Progress::Processed);
            match tokio::time::timeout_at(deadline, processed).await {
                Ok(Ok(_)) => return Turn::Processed,
                // It failed. Of those who waited, the first to come leads.
                Ok(Err(_)) => {}
                Err(_) => return Turn::TimeUp,
            }
        }
    }

    /// Resolves when nothing is in flight.
    pub(crate) async fn drained(&self) {
        loop {
            // Listens before it looks, so as not to miss the last one in between.
            let mut idle = pin!(self.0.idle.notified());
            idle.as_mut().enable();
            if self.lock().is_empty() {
                return;
            }
            idle.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Leads> {
        // Nothing panics while it holds the lock.
        self.0.leads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lead of a delivery. Dropping it passes the lead on to one of those who wait.
#[derive(Debug)]
pub(crate) struct Lead {
    in_flight: InFlight,
    id: DeliveryId,
    progress: watch::Sender<Progress>,
}

impl Lead {
    /// The delivery is processed: those who wait need not look.
    pub(crate) fn processed(self) {
        self.progress.send_replace(Progress::Processed);
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        // Before `progress` is dropped and wakes those who wait.
        let mut leads = self.in_flight.lock();
        leads.remove(&self.id);
        if leads.is_empty() {
            self.in_flight.0.idle.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn id(id: &str) -> DeliveryId {
        DeliveryId::new(id.to_owned())
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(50)
    }

    fn far() -> Instant {
        Instant::now() + Duration::from_secs(3600)
    }

    #[tokio::test]
    async fn one_leads_and_the_others_learn_of_its_success() {
        let in_flight = InFlight::default();
        let Turn::Lead(lead) = in_flight.turn(&id("a"), far()).await else {
            unreachable!("nobody else is at it");
        };
        assert!(matches!(
            in_flight.turn(&id("b"), far()).await,
            Turn::Lead(_)
        ));
        assert!(matches!(
            in_flight.turn(&id("a"), soon()).await,
            Turn::TimeUp
        ));
        let waiting = tokio::spawn({
            let in_flight = in_flight.clone();
            async move { matches!(in_flight.turn(&id("a"), far()).await, Turn::Processed) }
        });
        tokio::task::yield_now().await;
        lead.processed();
        assert!(waiting.await.is_ok_and(|processed| processed));
        assert!(in_flight.lock().is_empty());
    }

    #[tokio::test]
    async fn g7_after_a_failure_exactly_one_waiter_leads() {
        let in_flight = InFlight::default();
        let Turn::Lead(lead) = in_flight.turn(&id("a"), far()).await else {
            unreachable!("nobody else is at it");
        };
        let (turns, mut took) = tokio::sync::mpsc::unbounded_channel();
        for _ in 0..10 {
            let (in_flight, turns) = (in_flight.clone(), turns.clone());
            tokio::spawn(async move {
                let _ = turns.send(in_flight.turn(&id("a"), far()).await);
            });
        }
        tokio::task::yield_now().await;
        drop(lead);
        let Some(Turn::Lead(second)) = took.recv().await else {
            unreachable!("a waiter leads before any other has its turn");
        };
        tokio::task::yield_now().await;
        assert!(took.try_recv().is_err());
        second.processed();
        for _ in 0..9 {
            assert!(matches!(took.recv().await, Some(Turn::Processed)));
        }
        assert!(in_flight.lock().is_empty());
    }
}
