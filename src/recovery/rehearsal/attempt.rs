//! The mark by which `layer/request/rehearse.rs` recognizes a rehearsal, and the result of the rehearsal.
//! `transaction/commit.rs` rolls it back.

use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::provider::delivery::Delivery;
use crate::transaction::{AsRead, RowsByTable};

/// The mark of a rehearsal, in the extensions of a request that is rolled back regardless of the handler's answer.
/// The request was verified when it was kept. No request from outside can have the mark: extensions do not come
/// over the wire, and the type is private.
#[derive(Clone, Debug)]
pub(crate) struct RehearsalAttempt(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    delivery: Delivery,
    read: AsRead,
    /// The task of the layer, once the layer was reached.
    task: OnceLock<AbortHandle>,
    result: OnceLock<Result<RehearsalResult, Refused>>,
    has_ended: Notify,
}

/// The result of a rehearsal in the layer.
#[derive(Clone, Debug)]
pub(crate) enum RehearsalResult {
    /// It would be processed.
    Processed {
        /// A mistake that looks like success, if the layer has seen one.
        suspicion: Option<String>,
        /// The rows that its handler has written. `None` if Postgres does not count rows.
        written: Option<RowsByTable>,
    },
    /// It would fail, for this reason.
    Failed(String),
    /// It has failed for a reason outside of the handler, such as a deadlock.
    Interrupted(String),
    /// This version has no handler for its event type.
    Ignored(String),
    /// The rehearsal shows nothing about the handler, for this reason. If the rehearsal has reached no layer, real
    /// requests will not reach a layer either.
    NotRun { reason: String, is_unreached: bool },
    /// Its row has changed since it was read.
    Changed,
}

impl RehearsalResult {
    pub(crate) fn not_run(reason: String) -> Self {
        Self::NotRun {
            reason,
            is_unreached: false,
        }
    }

    pub(crate) fn unreached(reason: String) -> Self {
        Self::NotRun {
            reason,
            is_unreached: true,
        }
    }
}

/// Why an endpoint is refused if its layer does not allow rehearsals.
pub(crate) const NOT_REHEARSABLE: &str = "its layer is not `rehearsable`, which declares that a rollback undoes the work of its handlers";

/// Why no delivery of the endpoint may be rehearsed.
#[derive(Clone, Debug)]
pub(crate) struct Refused(pub(crate) String);

/// Aborts the layer's work when it is dropped.
pub(super) struct AbortOnDrop(RehearsalAttempt);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        let AbortOnDrop(RehearsalAttempt(inner)) = self;
        if let Some(task) = inner.task.get() {
            task.abort();
        }
    }
}

impl RehearsalAttempt {
    pub(super) fn new(delivery: Delivery, read: AsRead) -> Self {
        Self(Arc::new(Inner {
            delivery,
            read,
            task: OnceLock::new(),
            result: OnceLock::new(),
            has_ended: Notify::new(),
        }))
    }

    pub(crate) fn delivery(&self) -> &Delivery {
        &self.0.delivery
    }

    /// The row of the delivery, as it was read before the lock.
    pub(crate) fn read(&self) -> &AsRead {
        &self.0.read
    }

    /// Notes that the layer has started, in this task.
    pub(crate) fn begin(&self, task: AbortHandle) {
        // Only the first layer is noted. If the request reaches a second layer, that layer runs within the task of the
        // first.
        let _ = self.0.task.set(task);
    }

    /// Notes that the layer has finished the rehearsal.
    pub(crate) fn end(&self, result: Result<RehearsalResult, Refused>) {
        // A rehearsal has only one result.
        let _ = self.0.result.set(result);
        self.0.has_ended.notify_one();
    }

    pub(super) fn abort_on_drop(&self) -> AbortOnDrop {
        AbortOnDrop(self.clone())
    }

    /// Waits for the layer, even if a middleware has answered before it. `None` if no layer was reached.
    pub(super) async fn result(&self) -> Option<Result<RehearsalResult, Refused>> {
        self.0.task.get()?;
        loop {
            if let Some(result) = self.0.result.get() {
                return Some(result.clone());
            }
            self.0.has_ended.notified().await;
        }
    }
}
