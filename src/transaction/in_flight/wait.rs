//! The wait for another attempt in this process, up to a deadline: `in_flight_timeout` after the request arrived. When
//! this wait is over, the claim waits for attempts in other processes, up to the same deadline
//! (`transaction/claim.rs`).

use std::collections::hash_map::Entry;

use tokio::sync::watch;
use tokio::time::Instant;

use super::{FlightKey, InFlight, InFlightGuard, Progress};
use crate::metrics::Metrics;

/// The result of [`InFlight::enter`].
pub(crate) enum Entered {
    /// No other attempt in this process works on the key until the guard is dropped.
    First(InFlightGuard),
    /// Another attempt has processed the delivery meanwhile.
    Processed,
    /// Another attempt was still running at the deadline.
    TimedOut,
}

impl InFlight {
    /// Waits until no other attempt works on the key, another attempt has succeeded, or the `deadline` has passed.
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
                // The other attempt failed. The waiter that is woken first runs next.
                Ok(Err(_)) => {}
                Err(_) => return Entered::TimedOut,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::provider::delivery::{DeliveryId, DeliveryKey};

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
