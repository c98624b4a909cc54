//! The claim of a delivery whose handler runs before it.

use std::time::Duration;

use tokio::time::Instant;

use super::claim::{ClaimRequest, NotClaimed};
use super::extension::ClaimedTx;
use super::store::Store;
use crate::metrics::{Metrics, Stage};

/// What a claim needs that the handler makes, or the layer after it.
pub(crate) struct PendingClaim {
    store: Store,
    request: ClaimRequest,
    /// The longest wait for another process.
    wait: Duration,
    metrics: Metrics,
    /// When the handler was called.
    called_at: Instant,
}

impl PendingClaim {
    pub(crate) fn new(
        store: Store,
        request: ClaimRequest,
        wait: Duration,
        metrics: Metrics,
    ) -> Self {
        Self {
            store,
            request,
            wait,
            metrics,
            called_at: Instant::now(),
        }
    }

    /// Claims the delivery for the handler.
    pub(super) async fn begin(&self) -> Result<ClaimedTx, NotClaimed> {
        let time = self.called_at.elapsed();
        self.metrics.duration(Stage::BeforeClaim, time);
        self.claim().await
    }

    pub(crate) async fn claim(&self) -> Result<ClaimedTx, NotClaimed> {
        let started = Instant::now();
        let claimed = self.store.claim(&self.request, started + self.wait).await;
        self.metrics.duration(Stage::Claim, started.elapsed());
        claimed
    }
}
