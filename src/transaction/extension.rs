//! The transaction in a request's extensions: how it gets to the handler and back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::after_commit::AfterCommit;
use super::connection::{TransactionId, TxConnection};
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
    state: Arc<Mutex<State>>,
}

enum State {
    Available(ClaimedTx),
    Taken,
    Closed,
}

/// Why there is no transaction to take.
pub(super) enum NotAvailable {
    Taken,
    Closed,
}

impl Slot {
    pub(crate) fn new(delivery: Delivery, tx: ClaimedTx) -> Self {
        Self {
            delivery,
            state: Arc::new(Mutex::new(State::Available(tx))),
        }
    }

    pub(crate) fn delivery(&self) -> &Delivery {
        &self.delivery
    }

    /// Takes the transaction, until `put_back`.
    pub(super) fn take(&self) -> Result<ClaimedTx, NotAvailable> {
        let mut state = self.lock();
        match std::mem::replace(&mut *state, State::Taken) {
            State::Available(mut tx) => {
                tx.was_taken = true;
                Ok(tx)
            }
            State::Taken => Err(NotAvailable::Taken),
            State::Closed => {
                *state = State::Closed;
                Err(NotAvailable::Closed)
            }
        }
    }

    /// Returns the transaction. If the request is over, the connection is closed instead.
    pub(super) fn put_back(&self, tx: ClaimedTx) {
        let mut state = self.lock();
        if let State::Taken = *state {
            *state = State::Available(tx);
        }
    }

    /// Takes the transaction for good. `None` if the handler has left it somewhere.
    pub(crate) fn close(&self) -> Option<ClaimedTx> {
        match std::mem::replace(&mut *self.lock(), State::Closed) {
            State::Available(tx) => Some(tx),
            State::Taken | State::Closed => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
