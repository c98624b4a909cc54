//! The quota: how much may be kept for an endpoint.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::provider::delivery::Delivery;
use crate::tasks_and_errors::background::spawn_once;
use crate::transaction::{DatabaseError, Store};

/// The time between two counts while deliveries are kept. Between two counts, more may be kept than the quota allows.
const INTERVAL: Duration = Duration::from_secs(5);

/// The time between two counts while the quota is exhausted. Refused deliveries must not wait long for room.
const WHILE_FULL: Duration = Duration::from_secs(1);

/// The most deliveries, and the most bytes of bodies, that are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QuotaLimits {
    pub(crate) deliveries: i64,
    pub(crate) bytes: i64,
}

impl QuotaLimits {
    pub(crate) fn new(deliveries: u32, bytes: u64) -> Self {
        Self {
            deliveries: deliveries.into(),
            bytes: i64::try_from(bytes).unwrap_or(i64::MAX),
        }
    }
}

impl Default for QuotaLimits {
    fn default() -> Self {
        Self::new(100_000, 1024 * 1024 * 1024)
    }
}

/// The quota of an endpoint. Clones share the count.
#[derive(Clone, Debug)]
pub(crate) struct Quota {
    limits: QuotaLimits,
    is_full: Arc<AtomicBool>,
    /// When the kept deliveries were last counted. Locked during a count.
    counted_at: Arc<Mutex<Option<Instant>>>,
}

impl Quota {
    pub(crate) fn new(limits: QuotaLimits) -> Self {
        Self {
            limits,
            is_full: Arc::default(),
            counted_at: Arc::default(),
        }
    }

    /// Whether a delivery may be kept: the quota has room, or keeping the delivery adds no row.
    pub(crate) async fn has_room_for(
        &self,
        store: &Store,
        delivery: &Delivery,
    ) -> Result<bool, DatabaseError> {
        if !self.is_full.load(Ordering::Relaxed) {
            return Ok(true);
        }
        // One request counts the kept deliveries again, and concurrent requests wait for its result.
        let mut counted_at = self.counted_at.lock().await;
        if counted_at.is_none_or(|at| at.elapsed() > WHILE_FULL) {
            let counted = self.count(store, delivery.endpoint()).await;
            // This is also set after a failed count. If it were not, each waiting request would try to count, one after
            // the other.
            *counted_at = Some(Instant::now());
            counted?;
        }
        drop(counted_at);
        Ok(!self.is_full.load(Ordering::Relaxed) || store.is_known(delivery).await?)
    }

    /// Notes that a delivery was kept. If the last count is old enough, counts again in the background.
    pub(crate) fn note_kept(&self, store: &Store, endpoint: &Arc<str>) {
        let Ok(mut counted_at) = self.counted_at.clone().try_lock_owned() else {
            return;
        };
        if counted_at.is_some_and(|at| at.elapsed() < INTERVAL) {
            return;
        }
        *counted_at = Some(Instant::now());
        let (quota, store, endpoint) = (self.clone(), store.clone(), endpoint.clone());
        spawn_once("quota", async move {
            if let Err(error) = quota.count(&store, &endpoint).await {
                tracing::warn!(
                    endpoint = &*endpoint,
                    %error,
                    "could not check the quota of kept webhooks"
                );
            }
            drop(counted_at);
        });
    }

    async fn count(&self, store: &Store, endpoint: &str) -> Result<(), DatabaseError> {
        let QuotaLimits { deliveries, bytes } = self.limits;
        let is_full = store.is_full(endpoint, deliveries, bytes).await?;
        if !self.is_full.swap(is_full, Ordering::Relaxed) && is_full {
            tracing::error!(
                endpoint,
                "webhook quota exhausted: no more deliveries of this endpoint are kept; retry or discard dead ones, or \
                 raise `Keep::quota`"
            );
        }
        Ok(())
    }
}
