//! The mark of a request that recovery sends through the application's router.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use crate::delivery::{Delivery, DeliveryId, Tenant, VerifiedDelivery};

/// In the extensions of a request that was verified when it was kept. No request from outside can
/// have it: extensions do not come over the wire, and the type is private.
#[derive(Clone, Debug)]
pub(crate) struct Replay(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    endpoint: Arc<str>,
    tenant: Option<Tenant>,
    verified: VerifiedDelivery,
    attempt: u32,
    retries: u32,
    first_received_at: SystemTime,
    held_by_failures: Option<i32>,
    /// Whether the layer of the endpoint has taken the attempt.
    reached: AtomicBool,
}

/// What is known of a kept delivery.
pub(super) struct Kept {
    pub(super) endpoint: Arc<str>,
    /// The tenant in the key, empty if there is none.
    pub(super) key_tenant: String,
    pub(super) tenant_name: Option<String>,
    pub(super) delivery_id: String,
    pub(super) event_type: Option<String>,
    pub(super) signed_at: Option<SystemTime>,
    pub(super) attempt: u32,
    pub(super) retries: u32,
    pub(super) first_received_at: SystemTime,
    /// With as many failures in a row, it does not begin. `None` if it is a probe.
    pub(super) held_by_failures: Option<i32>,
}

impl Replay {
    pub(super) fn new(kept: Kept) -> Self {
        let separate_ids = !kept.key_tenant.is_empty();
        let name = kept.tenant_name.or(separate_ids.then_some(kept.key_tenant));
        Self(Arc::new(Inner {
            endpoint: kept.endpoint,
            tenant: name.map(|name| Tenant {
                name: name.into(),
                separate_ids,
            }),
            verified: VerifiedDelivery {
                id: DeliveryId::new(kept.delivery_id),
                event_type: kept.event_type,
                signed_at: kept.signed_at,
            },
            attempt: kept.attempt,
            retries: kept.retries,
            first_received_at: kept.first_received_at,
            held_by_failures: kept.held_by_failures,
            reached: AtomicBool::new(false),
        }))
    }

    /// The delivery, if it is for this endpoint.
    pub(crate) fn delivery_for(&self, endpoint: &Arc<str>, provider: Arc<str>) -> Option<Delivery> {
        (self.0.endpoint == *endpoint).then(|| self.delivery(provider))
    }

    /// The layer has taken the attempt, and writes down what becomes of it.
    pub(crate) fn reach(&self) {
        self.0.reached.store(true, Ordering::Relaxed);
    }

    pub(super) fn delivery(&self, provider: Arc<str>) -> Delivery {
        let inner = &*self.0;
        Delivery::new(
            inner.endpoint.clone(),
            provider,
            inner.tenant.clone(),
            inner.verified.clone(),
        )
        .at_attempt(inner.attempt, inner.first_received_at)
    }

    /// How many attempts of the schedule there have been, this one included.
    pub(crate) fn retries(&self) -> u32 {
        self.0.retries
    }

    /// With as many failures of the endpoint in a row, it does not begin.
    pub(crate) fn held_by_failures(&self) -> Option<i32> {
        self.0.held_by_failures
    }

    pub(super) fn was_reached(&self) -> bool {
        self.0.reached.load(Ordering::Relaxed)
    }
}
