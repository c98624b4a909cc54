//! The *slot* in the request's extensions, which passes the transaction to the handler and gets it back. (The slots of
//! recovery are something else: `recovery/shared.rs`.)

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::after_commit::AfterCommit;
use super::claim::NotClaimed;
use super::connection::{TransactionId, TxConnection};
use super::pending_claim::PendingClaim;
use super::written::RowsByTable;
use crate::provider::delivery::Delivery;
use crate::tasks_and_errors::extract_error::ExtractError;

/// The open transaction of a claim, with everything that its commit needs.
pub(crate) struct ClaimedTx {
    pub(super) connection: TxConnection,
    pub(super) id: TransactionId,
    /// The time limit of the commit and of the rollback.
    pub(super) timeout: Duration,
    /// The work to do after the commit.
    pub(super) after_commit: AfterCommit,
    /// Whether the handler, or middleware or an extractor on its behalf, has taken this out of the request.
    pub(crate) was_extracted: bool,
    /// Whether an operator has asked to reprocess the delivery.
    pub(crate) is_reprocessed: bool,
    /// For a rehearsal: the rows that the session had written before the handler ran. `None` if Postgres does not count
    /// rows.
    pub(super) written_before: Option<RowsByTable>,
    /// Set when a savepoint with writes is dropped without a commit or a rollback.
    pub(super) dropped_savepoint: Arc<AtomicBool>,
}

impl ClaimedTx {
    pub(super) fn new(
        mut connection: TxConnection,
        id: TransactionId,
        timeout: Duration,
        is_reprocessed: bool,
        written_before: Option<RowsByTable>,
    ) -> Self {
        connection.give_to_handler(&id);
        Self {
            connection,
            id,
            timeout,
            after_commit: AfterCommit::default(),
            was_extracted: false,
            is_reprocessed,
            written_before,
            dropped_savepoint: Arc::default(),
        }
    }

    /// Whether a savepoint with writes was dropped without a commit or a rollback.
    pub(crate) fn has_dropped_savepoint(&self) -> bool {
        self.dropped_savepoint.load(Ordering::Relaxed)
    }
}

/// The slot in a request's extensions from which the handler takes the transaction, and to which the transaction
/// returns when the handler drops it.
#[derive(Clone)]
pub(crate) struct Slot {
    delivery: Delivery,
    /// Whether the handler claims the delivery itself.
    is_late: bool,
    content: Arc<Mutex<Content>>,
}

struct Content {
    /// `None` while the handler has the content.
    left: Option<Left>,
    /// Whether the handler has answered, and the layer has taken what the handler left.
    is_closed: bool,
}

/// The content of a slot: what the handler can take from it, or has left in it.
pub(crate) enum Left {
    Transaction(ClaimedTx),
    /// A delivery that the handler may claim.
    Claim(PendingClaim),
    /// The handler has tried to claim the delivery, but the claim failed for this reason.
    NotClaimed(NotClaimed),
    /// The handler says that it has committed the delivery with another driver.
    Committed(PendingClaim),
}

impl Slot {
    pub(crate) fn new(delivery: Delivery, tx: ClaimedTx) -> Self {
        Self::with(delivery, false, Left::Transaction(tx))
    }

    /// A slot for a handler that claims the delivery itself.
    pub(crate) fn late(delivery: Delivery, pending: PendingClaim) -> Self {
        Self::with(delivery, true, Left::Claim(pending))
    }

    fn with(delivery: Delivery, is_late: bool, left: Left) -> Self {
        Self {
            delivery,
            is_late,
            content: Arc::new(Mutex::new(Content {
                left: Some(left),
                is_closed: false,
            })),
        }
    }

    pub(crate) fn delivery(&self) -> &Delivery {
        &self.delivery
    }

    /// Takes the transaction, until it is put back.
    pub(super) fn take(&self) -> Result<ClaimedTx, ExtractError> {
        if self.is_late {
            return Err(ExtractError::ClaimedLate);
        }
        let mut content = self.lock();
        match content.left.take() {
            Some(Left::Transaction(mut tx)) => {
                tx.was_extracted = true;
                Ok(tx)
            }
            left => Err(content.refuse(left)),
        }
    }

    /// Takes what the claim needs, until it is put back.
    pub(super) fn take_pending(&self) -> Result<PendingClaim, ExtractError> {
        if !self.is_late {
            return Err(ExtractError::ClaimedBefore);
        }
        let mut content = self.lock();
        match content.left.take() {
            Some(Left::Claim(mut pending)) => {
                pending.was_extracted = true;
                Ok(pending)
            }
            left => Err(content.refuse(left)),
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Puts back what the handler has taken, or the result if the handler has used it. If the slot is already closed,
    /// this drops `left` instead. Dropping a transaction closes its connection, and Postgres rolls back.
    pub(super) fn put_back(&self, left: Left) {
        let mut content = self.lock();
        if !content.is_closed {
            content.left = Some(left);
        }
    }

    /// Closes the slot and returns what the handler has left. `None` if the handler has stored the transaction or the
    /// claim somewhere.
    pub(crate) fn close(&self) -> Option<Left> {
        let mut content = self.lock();
        content.is_closed = true;
        content.left.take()
    }

    fn lock(&self) -> MutexGuard<'_, Content> {
        // Nothing panics while it holds the lock.
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Content {
    /// Leaves `left` in the slot, because the handler asked for something else. Returns the error.
    fn refuse(&mut self, left: Option<Left>) -> ExtractError {
        self.left = left;
        match self.is_closed {
            true => ExtractError::Over,
            false => ExtractError::AlreadyTaken,
        }
    }
}
