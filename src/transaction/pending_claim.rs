//! The inner half of a `LateClaim`: the claim of a delivery whose handler runs first.

use std::time::Duration;

use tokio::time::Instant;

use super::claim::{ClaimRequest, DuplicateOf, NotClaimed};
use super::slot::ClaimedTx;
use super::store::Store;
use crate::metrics::{Metrics, Stage};

/// What the claim needs, whether the handler makes it, or the layer after the handler.
pub(crate) struct PendingClaim {
    store: Store,
    request: ClaimRequest,
    /// Whether the handler, or a middleware or extractor on its behalf, has taken it out of the request.
    pub(crate) was_extracted: bool,
    /// What the handler knows: whether an operator has it processed again.
    is_reprocessed: bool,
    /// The longest wait for another attempt.
    wait: Duration,
    /// `None` if it is not measured.
    metrics: Option<Metrics>,
    /// When the handler was called.
    called_at: Instant,
    /// How long it may run.
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

    /// The number of the take, if the attempt is one at a kept delivery.
    pub(super) fn take(&self) -> Option<i64> {
        self.request.take
    }

    /// Claims the delivery for the handler. It waits for half of the handler's remaining time, so a wait without
    /// success is not taken for a handler that is too slow.
    pub(super) async fn begin(&self) -> Result<ClaimedTx, NotClaimed> {
        let time = self.called_at.elapsed();
        self.measure(Stage::BeforeClaim, time);
        let left = self.handler_timeout.saturating_sub(time);
        self.claim_within(self.wait.min(left / 2)).await
    }

    /// Claims the delivery after the handler.
    pub(crate) async fn claim(&self) -> Result<ClaimedTx, NotClaimed> {
        self.claim_within(self.wait).await
    }

    /// Whether the delivery is committed, as the handler says.
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
        // Without this: B commits, an operator has it processed again, and A, whose handler believes that it is new,
        // commits.
        if tx.is_reprocessed != self.is_reprocessed {
            tx.roll_back().await;
            return Err(NotClaimed::Superseded);
        }
        Ok(tx)
    }
}
