//! The transaction in a request's extensions: how it gets to the handler and back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::after_commit::AfterCommit;
use super::claim::NotClaimed;
use super::connection::{TransactionId, TxConnection};
use super::pending_claim::PendingClaim;
use crate::delivery::Delivery;

/// The open transaction of a claim, with everything that its commit needs.
pub(crate) struct ClaimedTx {
    pub(super) connection: TxConnection,
    pub(super) id: TransactionId,
    /// For the commit and for the rollback.
    pub(super) timeout: Duration,
    /// The work to do after the commit.
    pub(super) after_commit: AfterCommit,
    /// Whether the handler, or a middleware or extractor on its behalf, has taken it.
    pub(crate) was_taken: bool,
    /// Whether an operator has it run again although it was processed.
    pub(crate) is_reprocessed: bool,
    /// Set when a savepoint with writes is dropped without a commit or a rollback.
    pub(super) dropped_savepoint: Arc<AtomicBool>,
}

impl ClaimedTx {
    pub(super) fn new(
        connection: TxConnection,
        id: TransactionId,
        timeout: Duration,
        is_reprocessed: bool,
    ) -> Self {
        Self {
            connection,
            id,
            timeout,
            after_commit: AfterCommit::default(),
            was_taken: false,
            is_reprocessed,
            dropped_savepoint: Arc::default(),
        }
    }

    /// Whether a savepoint with writes was dropped without a commit or a rollback.
    pub(crate) fn has_dropped_savepoint(&self) -> bool {
        self.dropped_savepoint.load(Ordering::Relaxed)
    }
}

/// The place in a request's extensions from which the handler takes the transaction, and to
/// which it returns when the handler drops it.
#[derive(Clone)]
pub(crate) struct Slot {
    delivery: Delivery,
    /// Whether the handler claims the delivery.
    is_late: bool,
    state: Arc<Mutex<State>>,
}

enum State {
    /// The handler may claim the delivery.
    Unclaimed {
        pending: Arc<PendingClaim>,
        was_taken: bool,
    },
    /// It has tried to.
    NotClaimed(NotClaimed),
    /// It has claimed and committed the delivery by another driver.
    Committed(Arc<PendingClaim>),
    Available(ClaimedTx),
    Taken,
    Closed,
}

/// What a handler has left.
pub(crate) enum Left {
    Transaction(ClaimedTx),
    /// The delivery, which it has not claimed.
    Claim {
        pending: Arc<PendingClaim>,
        was_taken: bool,
    },
    /// The delivery, which it says to have committed by another driver.
    Committed(Arc<PendingClaim>),
}

/// The claim of a delivery whose handler has answered success.
pub(crate) enum Claimed {
    Here(ClaimedTx),
    /// By another driver, and committed.
    Elsewhere,
}

/// Why there is no claim.
pub(crate) enum NotThere {
    NotClaimed(NotClaimed),
    /// The handler says that it has committed it, and that is not so.
    NotCommitted,
}

impl From<NotClaimed> for NotThere {
    fn from(not_claimed: NotClaimed) -> Self {
        Self::NotClaimed(not_claimed)
    }
}

/// Why a handler has left nothing.
pub(crate) enum Lost {
    NotClaimed(NotClaimed),
    /// Something of it still has the transaction.
    Outlived,
}

impl Left {
    /// Whether the handler has taken the transaction or the claim.
    pub(crate) fn was_taken(&self) -> bool {
        match self {
            Self::Transaction(tx) => tx.was_taken,
            Self::Claim { was_taken, .. } => *was_taken,
            Self::Committed(_) => true,
        }
    }

    /// Whether the handler says that it has committed the delivery.
    pub(crate) fn is_committed(&self) -> bool {
        matches!(self, Self::Committed(_))
    }

    /// The claim, which is made now if the handler has not made it.
    pub(crate) async fn claimed(self) -> Result<Claimed, NotThere> {
        match self {
            Self::Transaction(tx) => Ok(Claimed::Here(tx)),
            Self::Claim { pending, was_taken } => {
                let mut tx = pending.claim().await?;
                tx.was_taken = was_taken;
                Ok(Claimed::Here(tx))
            }
            Self::Committed(pending) => match pending.is_committed().await? {
                true => Ok(Claimed::Elsewhere),
                false => Err(NotThere::NotCommitted),
            },
        }
    }

    /// Rolls back what there is, and waits for it.
    pub(crate) async fn roll_back(self) {
        if let Self::Transaction(tx) = self {
            tx.roll_back().await;
        }
    }
}

/// Why there is no transaction to take.
pub(super) enum NotAvailable {
    Taken,
    Closed,
    /// The handler claims the delivery.
    Late,
    /// The layer has claimed it.
    Early,
}

impl Slot {
    pub(crate) fn new(delivery: Delivery, tx: ClaimedTx) -> Self {
        Self {
            delivery,
            is_late: false,
            state: Arc::new(Mutex::new(State::Available(tx))),
        }
    }

    /// For a handler that claims the delivery.
    pub(crate) fn late(delivery: Delivery, pending: PendingClaim) -> Self {
        Self {
            delivery,
            is_late: true,
            state: Arc::new(Mutex::new(State::Unclaimed {
                pending: Arc::new(pending),
                was_taken: false,
            })),
        }
    }

    pub(crate) fn delivery(&self) -> &Delivery {
        &self.delivery
    }

    /// Takes the transaction, until `put_back`.
    pub(super) fn take(&self) -> Result<ClaimedTx, NotAvailable> {
        if self.is_late {
            return Err(NotAvailable::Late);
        }
        let mut state = self.lock();
        match std::mem::replace(&mut *state, State::Taken) {
            State::Available(mut tx) => {
                tx.was_taken = true;
                Ok(tx)
            }
            State::Closed => {
                *state = State::Closed;
                Err(NotAvailable::Closed)
            }
            State::Taken | State::Unclaimed { .. } | State::NotClaimed(_) | State::Committed(_) => {
                Err(NotAvailable::Taken)
            }
        }
    }

    /// Takes what the claim needs, until `put_back_pending`.
    pub(super) fn take_pending(&self) -> Result<Arc<PendingClaim>, NotAvailable> {
        if !self.is_late {
            return Err(NotAvailable::Early);
        }
        let mut state = self.lock();
        match std::mem::replace(&mut *state, State::Taken) {
            State::Unclaimed { pending, .. } => Ok(pending),
            State::Closed => {
                *state = State::Closed;
                Err(NotAvailable::Closed)
            }
            other => {
                *state = other;
                Err(NotAvailable::Taken)
            }
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        matches!(*self.lock(), State::Closed)
    }

    /// Returns what the claim needs: it was not made.
    pub(super) fn put_back_pending(&self, pending: Arc<PendingClaim>) {
        self.leave(State::Unclaimed {
            pending,
            was_taken: true,
        });
    }

    /// The handler says that it has committed the delivery by another driver.
    pub(super) fn commit_elsewhere(&self, pending: Arc<PendingClaim>) {
        self.leave(State::Committed(pending));
    }

    /// The delivery could not be claimed.
    pub(super) fn lose(&self, not_claimed: NotClaimed) {
        self.leave(State::NotClaimed(not_claimed));
    }

    /// Returns the transaction. If the request is over, the connection is closed instead.
    pub(super) fn put_back(&self, tx: ClaimedTx) {
        self.leave(State::Available(tx));
    }

    /// Takes for good what the handler has left.
    pub(crate) fn close(&self) -> Result<Left, Lost> {
        match std::mem::replace(&mut *self.lock(), State::Closed) {
            State::Available(tx) => Ok(Left::Transaction(tx)),
            State::Unclaimed { pending, was_taken } => Ok(Left::Claim { pending, was_taken }),
            State::Committed(pending) => Ok(Left::Committed(pending)),
            State::NotClaimed(not_claimed) => Err(Lost::NotClaimed(not_claimed)),
            State::Taken | State::Closed => Err(Lost::Outlived),
        }
    }

    /// Leaves another state to the layer, unless it has taken what there was.
    fn leave(&self, left: State) {
        let mut state = self.lock();
        if let State::Taken = *state {
            *state = left;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
