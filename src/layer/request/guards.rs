//! The wait for other attempts in this process. It holds no connection. A guard is held by the attempt that runs, and
//! makes other attempts wait.

use std::time::Duration;

use tokio::time::Instant;

use super::admitted::Admitted;
use super::decision::How;
use crate::metrics::outcome::Outcome;
use crate::transaction::in_flight::{Entered, FlightKey, InFlightGuard};
use crate::transaction::{DuplicateOf, NotClaimed};

/// How long an attempt without a waiting sender waits for other deliveries of its object.
const BACKGROUND_WAIT: Duration = Duration::from_secs(1);

/// The guards of the one attempt in this process that works on a delivery.
pub(super) struct Guards {
    id: InFlightGuard,
    /// Set with the replay guard.
    fingerprint: Option<InFlightGuard>,
    /// Set if deliveries of one object run one at a time.
    _object: Option<InFlightGuard>,
}

impl Admitted {
    /// Waits for another attempt at the same delivery.
    pub(super) async fn enter_id(&self) -> Result<InFlightGuard, NotClaimed> {
        let key = FlightKey::Delivery(self.delivery.key());
        self.enter_one(key, DuplicateOf::Id).await
    }

    /// Waits for the attempts in this process that must not run at the same time as this one. `id` is the guard of the
    /// delivery, if this attempt already has it.
    pub(super) async fn enter(&self, id: Option<InFlightGuard>) -> Result<Guards, NotClaimed> {
        let id = match id {
            Some(id) => id,
            None => self.enter_id().await?,
        };
        let tenant = self.delivery.key().tenant;
        let fingerprint = match self.fingerprint {
            Some(digest) => {
                let tenant = tenant.clone();
                let processed = DuplicateOf::Body { first: None };
                let key = FlightKey::Fingerprint { tenant, digest };
                Some(self.enter_one(key, processed).await?)
            }
            None => None,
        };
        let object = match self.object.clone() {
            Some(object) => {
                let key = FlightKey::Object { tenant, object };
                Some(self.enter_object(key).await?)
            }
            None => None,
        };
        Ok(Guards {
            id,
            fingerprint,
            _object: object,
        })
    }

    async fn enter_one(
        &self,
        key: FlightKey,
        processed: DuplicateOf,
    ) -> Result<InFlightGuard, NotClaimed> {
        match self.enter_until(key, self.deadline).await {
            Entered::First(guard) => Ok(guard),
            Entered::Processed => Err(NotClaimed::Duplicate(processed)),
            Entered::TimedOut => Err(NotClaimed::InFlight),
        }
    }

    /// Waits for other deliveries of the same object.
    async fn enter_object(&self, key: FlightKey) -> Result<InFlightGuard, NotClaimed> {
        let deadline = match self.object_wait() {
            Some(wait) => self.deadline.min(Instant::now() + wait),
            None => self.deadline,
        };
        match self.enter_until(key, deadline).await {
            Entered::First(guard) => Ok(guard),
            // `Processed` does not occur for an object.
            Entered::Processed | Entered::TimedOut => {
                let store = &self.settings.store;
                Err(store.why_not_locked(&self.claim_request()).await)
            }
        }
    }

    /// The longest wait for the object, if no sender waits. This wait is shorter than the wait for the delivery,
    /// because the attempt holds a slot that deliveries of other objects could use.
    pub(super) fn object_wait(&self) -> Option<Duration> {
        (!self.origin.is_request()).then_some(BACKGROUND_WAIT)
    }

    async fn enter_until(&self, key: FlightKey, deadline: Instant) -> Entered {
        let metrics = &self.settings.verification.metrics;
        self.settings.in_flight.enter(key, deadline, metrics).await
    }
}

impl Guards {
    /// Wakes the waiting duplicates. If the delivery is processed, they are answered as duplicates. Otherwise, one of
    /// them becomes the next attempt.
    pub(super) fn release(self, how: How, outcome: Outcome) {
        // Other attempts may wait for this id, or for this body under another id. The two guards are released
        // separately. After `Replayed`, this body was processed, but this id was not. After `Duplicate`, this id was
        // processed, but perhaps with another body.
        let is_processed = matches!(outcome, Outcome::Processed | Outcome::Duplicate);
        if is_processed && how != How::Replayed {
            self.id.processed();
        }
        if let Some(fingerprint) = self.fingerprint
            && matches!(how, How::Processed | How::Replayed)
        {
            fingerprint.processed();
        }
    }
}
