//! The inner half of a `LateClaim`: the claim of a delivery whose handler runs first.

use std::time::Duration;

use tokio::time::Instant;

use super::claim::{ClaimRequest, DuplicateOf, NotClaimed};
use super::slot::ClaimedTx;
use super::store::Store;
use crate::metrics::{Metrics, Stage};

/// Everything that the claim needs, whether it is made by the handler, or by the layer after the handler.
pub(crate) struct PendingClaim {
    store: Store,
    request: ClaimRequest,
    /// Whether the handler, or middleware or an extractor on its behalf, has taken this out of the request.
    pub(crate) was_extracted: bool,
    /// Whether an operator had asked to reprocess the delivery when the handler was called.
    is_reprocessed: bool,
    /// The longest wait for another attempt.
    wait: Duration,
    /// `None` if the claim is not measured.
    metrics: Option<Metrics>,
    /// When the handler was called.
    called_at: Instant,
    /// How long the handler may run.
    handler_timeout: Duration,
}

impl PendingClaim {
    pub(crate) fn new(
        store: Store,
        request: ClaimRequest,
        is_reprocessed: bool,
        wait: Duration,
        metrics: Option<Metrics>,
        handler_timeout: Duration,
    ) -> Self {
        Self {
            store,
            request,
            was_extracted: false,
            is_reprocessed,
            wait,
            metrics,
            called_at: Instant::now(),
            handler_timeout,
        }
    }

    /// The take number, if this is an attempt at a kept delivery.
    pub(super) fn take(&self) -> Option<i64> {
        self.request.take
    }

    /// Claims the delivery for the handler. This waits for at most half of the handler's remaining time. Otherwise, a
    /// long wait would end in the handler's own timeout, and the handler would seem too slow.
    pub(super) async fn begin(&self) -> Result<ClaimedTx, NotClaimed> {
        let time = self.called_at.elapsed();
        self.measure(Stage::BeforeClaim, time);
        let left = self.handler_timeout.saturating_sub(time);
        self.claim_within(self.wait.min(left / 2)).await
    }

    /// Claims the delivery after the handler has answered.
    pub(crate) async fn claim(&self) -> Result<ClaimedTx, NotClaimed> {
        self.claim_within(self.wait).await
    }

    /// Checks the handler's report that it has committed the delivery: returns whether the claim is in the database.
    pub(crate) async fn is_committed(&self) -> Result<bool, NotClaimed> {
        let known = self.store.look_up(&self.request).await?;
        Ok(known.duplicate_of.is_some_and(|of| match of {
            DuplicateOf::Id => true,
            DuplicateOf::Body { .. } => false,
        }))
    }

    fn measure(&self, stage: Stage, time: Duration) {
        if let Some(metrics) = &self.metrics {
            metrics.duration(stage, time);
        }
    }

    async fn claim_within(&self, wait: Duration) -> Result<ClaimedTx, NotClaimed> {
        let started = Instant::now();
        let claimed = self.store.claim(&self.request, started + wait).await;
        self.measure(Stage::Claim, started.elapsed());
        let mut tx = claimed?;
        tx.was_extracted = self.was_extracted;
        // The handler may have an outdated value. For example, another attempt has committed since the handler was
        // called, and an operator has asked to reprocess the delivery. This handler still believes that the delivery is
        // new, so it must not commit.
        if tx.is_reprocessed != self.is_reprocessed {
            tx.roll_back().await;
            return Err(NotClaimed::Superseded);
        }
        Ok(tx)
    }
}
