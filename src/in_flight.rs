//! Deliveries in flight in this process: one leads, its duplicates wait for it without a
//! connection.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::crypto::Sha256Digest;
use crate::delivery::DeliveryKey;
use crate::meter::Meter;

/// What only one attempt at a time may be at in this process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Line {
    Delivery(DeliveryKey),
    /// Any delivery with this digest, where replays are guarded against.
    Digest {
        tenant: Option<Arc<str>>,
        digest: Sha256Digest,
    },
}

/// The deliveries of one endpoint that are in flight here. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct InFlight(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    at_work: Mutex<AtWork>,
    /// Notified whenever nothing is left to wait for.
    idle: Notify,
}

#[derive(Debug, Default)]
struct AtWork {
    /// Each with those who wait for it, once there are any.
    leads: HashMap<Line, Option<watch::Sender<Progress>>>,
    /// How many tasks there are besides.
    busy: usize,
}

impl AtWork {
    fn is_idle(&self) -> bool {
        self.leads.is_empty() && self.busy == 0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Running,
    Processed,
}

/// What came of standing in a line.
pub(crate) enum Place {
    /// This attempt leads: nobody else in this process is at the delivery.
    Lead(Lead),
    /// Another attempt has processed the delivery meanwhile.
    Processed,
    /// Another attempt was still at it when the time was up.
    TimeUp,
}

impl InFlight {
    /// Waits until this attempt leads, another one has succeeded, or `deadline`.
    pub(crate) async fn turn(&self, line: Line, deadline: Instant, meter: &Meter) -> Place {
        loop {
            let mut ahead = match self.lock().leads.entry(line.clone()) {
                Entry::Occupied(mut entry) => entry
                    .get_mut()
                    .get_or_insert_with(|| watch::Sender::new(Progress::Running))
                    .subscribe(),
                Entry::Vacant(entry) => {
                    entry.insert(None);
                    return Place::Lead(Lead {
                        in_flight: self.clone(),
                        line,
                        processed: false,
                    });
                }
            };
            let _waiting = meter.waiting();
            let processed = ahead.wait_for(|progress| *progress == Progress::Processed);
            match tokio::time::timeout_at(deadline, processed).await {
                Ok(Ok(_)) => return Place::Processed,
                // It failed. Of those who waited, the first to come leads.
                Ok(Err(_)) => {}
                Err(_) => return Place::TimeUp,
            }
        }
    }

    /// Resolves when nothing is in flight.
    pub(crate) async fn drained(&self) {
        loop {
            // Listens before it looks, so as not to miss the last one in between.
            let mut idle = pin!(self.0.idle.notified());
            idle.as_mut().enable();
            if self.lock().is_idle() {
                return;
            }
            idle.await;
        }
    }

    /// Counts a task that is worth waiting for at shutdown, until it is dropped.
    pub(crate) fn busy(&self) -> Busy {
        self.lock().busy += 1;
        Busy(self.clone())
    }

    /// Lets go of something, and says so if it was the last.
    fn end<T>(&self, end: impl FnOnce(&mut AtWork) -> T) -> T {
        let mut at_work = self.lock();
        let ended = end(&mut at_work);
        if at_work.is_idle() {
            self.0.idle.notify_waiters();
        }
        ended
    }

    fn lock(&self) -> MutexGuard<'_, AtWork> {
        // Nothing panics while it holds the lock.
        self.0
            .at_work
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lead of a delivery. Dropping it passes the lead on to one of those who wait.
#[derive(Debug)]
pub(crate) struct Lead {
    in_flight: InFlight,
    line: Line,
    processed: bool,
}

impl Lead {
    /// The delivery is processed: those who wait need not look.
    pub(crate) fn processed(mut self) {
        self.processed = true;
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        let waiting = self
            .in_flight
            .end(|at_work| at_work.leads.remove(&self.line).flatten());
        // The line is free by now, so the first whom this wakes may lead.
        if let Some(waiting) = waiting
            && self.processed
        {
            waiting.send_replace(Progress::Processed);
        }
    }
}

/// A task that is not done yet.
#[derive(Debug)]
pub(crate) struct Busy(InFlight);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.end(|at_work| at_work.busy -= 1);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::delivery::DeliveryId;

    fn id(id: &str) -> Line {
        Line::Delivery(DeliveryKey {
            tenant: None,
            id: DeliveryId::new(id.to_owned()),
        })
    }

    fn meter() -> Meter {
        Meter::new("test".into(), "acme".into())
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
        let Place::Lead(lead) = in_flight.turn(id("a"), far(), &meter()).await else {
            unreachable!("nobody else is at it");
        };
        assert!(matches!(
            in_flight.turn(id("b"), far(), &meter()).await,
            Place::Lead(_)
        ));
        assert!(matches!(
            in_flight.turn(id("a"), soon(), &meter()).await,
            Place::TimeUp
        ));
        let waiting = tokio::spawn({
            let in_flight = in_flight.clone();
            async move {
                matches!(
                    in_flight.turn(id("a"), far(), &meter()).await,
                    Place::Processed
                )
            }
        });
        tokio::task::yield_now().await;
        lead.processed();
        assert!(waiting.await.is_ok_and(|processed| processed));
        assert!(in_flight.lock().is_idle());
    }

    #[tokio::test]
    async fn g7_after_a_failure_exactly_one_waiter_leads() {
        let in_flight = InFlight::default();
        let Place::Lead(lead) = in_flight.turn(id("a"), far(), &meter()).await else {
            unreachable!("nobody else is at it");
        };
        let (turns, mut took) = tokio::sync::mpsc::unbounded_channel();
        for _ in 0..10 {
            let (in_flight, turns) = (in_flight.clone(), turns.clone());
            tokio::spawn(async move {
                let _ = turns.send(in_flight.turn(id("a"), far(), &meter()).await);
            });
        }
        tokio::task::yield_now().await;
        drop(lead);
        let Some(Place::Lead(second)) = took.recv().await else {
            unreachable!("a waiter leads before any other has its turn");
        };
        tokio::task::yield_now().await;
        assert!(took.try_recv().is_err());
        second.processed();
        for _ in 0..9 {
            assert!(matches!(took.recv().await, Some(Place::Processed)));
        }
        assert!(in_flight.lock().is_idle());
    }
}
