//! The settings of a layer, which its service reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::StatusCode;
use sqlx::PgPool;

use crate::delivery::Delivery;
use crate::digest::sha256_of;
use crate::in_flight::{InFlight, ProcessedCache};
use crate::metrics::Metrics;
use crate::provider::Provider;
use crate::transaction::{Fingerprint, Store};

/// The longest timeout, far below what Postgres and the clock can hold.
pub(crate) const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// What is done with the bodies of deliveries besides verifying them.
#[derive(Clone, Copy)]
pub(crate) enum Bodies {
    Ignored,
    Compared,
    Guarded,
}

/// The settings of a layer, with the state that its clones share.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) endpoint: Arc<str>,
    pub(crate) provider: Provider,
    pub(crate) store: Store,
    pub(crate) in_flight: InFlight,
    pub(crate) processed: Option<ProcessedCache>,
    pub(crate) bodies: Bodies,
    pub(crate) record_failures: bool,
    pub(crate) allow_unused_transaction: bool,
    pub(crate) metrics: Metrics,
    pub(crate) refused_a_method: Arc<AtomicBool>,
    pub(crate) body_timeout: Duration,
    pub(crate) handler_timeout: Duration,
    pub(crate) in_flight_timeout: Duration,
    pub(crate) retry_after: Duration,
    pub(crate) also_commit_on: Option<Arc<dyn Fn(StatusCode) -> bool + Send + Sync>>,
}

impl Settings {
    /// The defaults.
    pub(crate) fn new(pool: PgPool, endpoint: Arc<str>, provider: Provider) -> Self {
        let in_flight_timeout = provider.get_response_deadline().saturating_mul(3) / 5;
        Self {
            store: Store::new(
                pool,
                Duration::from_secs(3),
                provider.get_redelivery_window(),
            ),
            in_flight: InFlight::default(),
            processed: None,
            bodies: Bodies::Ignored,
            record_failures: false,
            allow_unused_transaction: false,
            metrics: Metrics::new(endpoint.clone(), provider.shared_name()),
            refused_a_method: Arc::default(),
            body_timeout: Duration::from_secs(10),
            handler_timeout: Duration::from_secs(30),
            in_flight_timeout: in_flight_timeout.min(MAX_TIMEOUT),
            retry_after: Duration::from_secs(5),
            also_commit_on: None,
            endpoint,
            provider,
        }
    }

    /// The fingerprint of a delivery, unless bodies are ignored.
    pub(crate) fn fingerprint(&self, delivery: &Delivery, body: &[u8]) -> Option<Fingerprint> {
        let guarded = match self.bodies {
            Bodies::Ignored => return None,
            Bodies::Compared => false,
            Bodies::Guarded => true,
        };
        let event_type = delivery.event_type().unwrap_or_default();
        Some(Fingerprint {
            digest: sha256_of([event_type.as_bytes(), body]),
            guarded,
        })
    }

    /// Whether a request was refused for its method before, of which there is one from now on.
    pub(crate) fn has_refused_a_method(&self) -> bool {
        self.refused_a_method.swap(true, Ordering::Relaxed)
    }

    /// Whether a response with this status commits.
    pub(crate) fn commits(&self, status: StatusCode) -> bool {
        status.is_success()
            || self
                .also_commit_on
                .as_ref()
                .is_some_and(|also| also(status))
    }
}
