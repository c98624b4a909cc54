//! The endpoints that this process serves, and so the ones that it recovers.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use sqlx::PgPool;
use tokio::sync::Notify;

use super::dead::DeadReport;
use super::presence::warn_if_absent;
use crate::endpoint_names::is_same_database;
use crate::transaction::Store;

static SERVED: Mutex<Vec<Weak<Served>>> = Mutex::new(Vec::new());

/// Notified whenever this process has kept a delivery.
static KEPT: Notify = Notify::const_new();

/// An endpoint with a layer in this process that keeps failed deliveries, for as long as the layer or
/// a service of it exists.
#[derive(Debug)]
pub(crate) struct Served {
    pub(super) endpoint: Arc<str>,
    /// The longest time that an attempt takes, in milliseconds.
    lease: AtomicU64,
    /// The attempts of the schedule.
    attempts: AtomicU32,
    /// Whether failures in a row hold it back, as far as the recovery of this process knows.
    probed: AtomicBool,
    /// Whether a delivery has been kept.
    has_kept: AtomicBool,
    /// Who hears of its dead deliveries, once there is a service.
    dead_report: Mutex<Option<DeadReport>>,
    pool: PgPool,
}

impl Served {
    pub(crate) fn new(endpoint: Arc<str>, pool: PgPool) -> Arc<Self> {
        let served = Arc::new(Self {
            endpoint,
            lease: AtomicU64::new(0),
            attempts: AtomicU32::new(0),
            probed: AtomicBool::new(false),
            has_kept: AtomicBool::new(false),
            dead_report: Mutex::default(),
            pool,
        });
        let mut all = SERVED.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|served| served.strong_count() > 0);
        all.push(Arc::downgrade(&served));
        served
    }

    /// The settings of a service that is made of the layer.
    pub(crate) fn set(&self, lease: Duration, attempts: u32, dead_report: DeadReport) {
        let lease = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
        self.lease.fetch_max(lease, Ordering::Relaxed);
        self.attempts.fetch_max(attempts, Ordering::Relaxed);
        *self.lock_dead_report() = Some(dead_report);
    }

    pub(super) fn dead_report(&self) -> Option<DeadReport> {
        self.lock_dead_report().clone()
    }

    fn lock_dead_report(&self) -> MutexGuard<'_, Option<DeadReport>> {
        self.dead_report
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether that is new.
    pub(super) fn set_probed(&self, probed: bool) -> bool {
        let endpoint = &*self.endpoint;
        let is_new = self.probed.swap(probed, Ordering::Relaxed) != probed;
        if is_new && probed {
            tracing::warn!(
                endpoint,
                "webhook recovery probes this endpoint: too many deliveries have failed in a row, so \
                 the others wait without using up attempts"
            );
        } else if is_new {
            tracing::info!(endpoint, "webhook recovery probes this endpoint no longer");
        }
        is_new
    }

    /// Whether failures in a row hold it back. Only the first caller gets to know, who ends that.
    pub(crate) fn take_probed(&self) -> bool {
        self.probed.load(Ordering::Relaxed) && self.set_probed(false)
    }

    /// A delivery has been kept. After the first one, it is checked that somebody recovers it.
    pub(crate) fn note_kept(&self, store: &Store) {
        if !self.has_kept.load(Ordering::Relaxed) && !self.has_kept.swap(true, Ordering::Relaxed) {
            tokio::spawn(warn_if_absent(store.clone(), self.endpoint.clone()));
        }
    }

    pub(super) fn lease(&self) -> Duration {
        Duration::from_millis(self.lease.load(Ordering::Relaxed))
    }

    pub(super) fn attempts(&self) -> u32 {
        self.attempts.load(Ordering::Relaxed)
    }

    /// The endpoints of a database that this process serves, each once.
    pub(super) fn on(pool: &PgPool) -> Vec<Arc<Self>> {
        let database = pool.connect_options();
        let all = SERVED.lock().unwrap_or_else(PoisonError::into_inner);
        let mut served: Vec<_> = all
            .iter()
            .filter_map(Weak::upgrade)
            // Without a service, nothing is served.
            .filter(|served| !served.lease().is_zero())
            .filter(|served| is_same_database(&served.pool.connect_options(), &database))
            .collect();
        served.sort_by(|a, b| a.endpoint.cmp(&b.endpoint).then(b.lease().cmp(&a.lease())));
        served.dedup_by(|later, first| later.endpoint == first.endpoint);
        served
    }
}

/// Tells the recovery of this process that there is something new.
pub(super) fn notify() {
    KEPT.notify_waiters();
}

/// Resolves when this process has kept a delivery since the call.
pub(super) fn notified() -> tokio::sync::futures::Notified<'static> {
    KEPT.notified()
}
