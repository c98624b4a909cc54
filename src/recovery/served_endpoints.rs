//! The endpoints that a recovery serves: the endpoints of the layers that hold its handle.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use super::breaker::Breaker;
use super::dead::DeadReport;
use super::schedule::Schedule;
use super::taken::RecoveryAttempt;
use crate::provider::delivery::Delivery;
use crate::tasks_and_errors::log_once::LogOnce;

/// How often the log says that attempts reach no layer.
const UNREACHED_INTERVAL: Duration = Duration::from_secs(60);

/// An endpoint whose layer keeps deliveries, for as long as the layer or one of its services exists.
#[derive(Debug)]
pub(crate) struct Served {
    pub(super) endpoint: Arc<str>,
    pub(super) schedule: Schedule,
    pub(super) breaker: Breaker,
    settings: Mutex<ServedSettings>,
    /// How many recovery attempts are running.
    running: AtomicUsize,
    /// How many recovery attempts have ended.
    ended: AtomicUsize,
    /// The number of the endpoint's last turn. A *turn* is one step of the loop in `runner.rs`, in which it takes or
    /// starts deliveries of one endpoint. The loop numbers its turns.
    turn: AtomicU64,
    /// Whether attempts have failed since the last success, as far as this process knows.
    has_failures: AtomicBool,
    /// When the log last said that an attempt of this process has reached no layer.
    unreached: LogOnce,
}

/// A layer that keeps deliveries.
pub(crate) struct ServedLayer {
    pub(crate) endpoint: Arc<str>,
    pub(crate) schedule: Schedule,
    pub(crate) breaker: Breaker,
    pub(crate) settings: ServedSettings,
}

/// Settings that may change until the layer makes a service.
#[derive(Clone, Debug)]
pub(crate) struct ServedSettings {
    /// The longest time that an attempt may take.
    pub(crate) longest_attempt: Duration,
    pub(crate) dead_report: DeadReport,
    pub(crate) is_rehearsable: bool,
}

impl Served {
    fn new(layer: ServedLayer) -> Self {
        Self {
            endpoint: layer.endpoint,
            schedule: layer.schedule,
            breaker: layer.breaker.within_bounds(),
            settings: Mutex::new(layer.settings),
            running: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
            turn: AtomicU64::new(0),
            has_failures: AtomicBool::new(false),
            unreached: LogOnce::of(1).again_after(UNREACHED_INTERVAL),
        }
    }

    /// Sets the settings when the layer makes a service.
    pub(crate) fn set(&self, settings: ServedSettings) {
        *self.lock_settings() = settings;
    }

    pub(super) fn longest_attempt(&self) -> Duration {
        self.lock_settings().longest_attempt
    }

    pub(super) fn is_rehearsable(&self) -> bool {
        self.lock_settings().is_rehearsable
    }

    pub(super) fn dead_report(&self) -> DeadReport {
        self.lock_settings().dead_report.clone()
    }

    /// The name of the provider.
    pub(super) fn provider(&self) -> Arc<str> {
        self.lock_settings().dead_report.provider.clone()
    }

    /// The delivery of an attempt, with the name of the provider.
    pub(super) fn delivery_of(&self, attempt: &RecoveryAttempt) -> Delivery {
        attempt.delivery(self.provider())
    }

    fn lock_settings(&self) -> MutexGuard<'_, ServedSettings> {
        // Nothing panics while it holds the lock.
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an attempt as running until the result is dropped.
    pub(super) fn run(self: &Arc<Self>) -> Running {
        self.running.fetch_add(1, Ordering::Relaxed);
        Running(self.clone())
    }

    pub(super) fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    pub(super) fn ended(&self) -> usize {
        self.ended.load(Ordering::Relaxed)
    }

    /// Notes that an attempt has reached no layer. Returns whether it is time to log that.
    pub(super) fn note_unreached(&self) -> bool {
        self.unreached.is_first(())
    }

    /// Notes that the endpoint has this turn.
    pub(super) fn set_turn(&self, turn: u64) {
        self.turn.store(turn, Ordering::Relaxed);
    }

    pub(super) fn turn(&self) -> u64 {
        self.turn.load(Ordering::Relaxed)
    }

    /// Notes that an attempt has failed.
    pub(crate) fn note_failure(&self) {
        self.has_failures.store(true, Ordering::Relaxed);
    }

    /// Whether attempts have failed since the last success, as far as this process knows.
    pub(super) fn has_failures(&self) -> bool {
        self.has_failures.load(Ordering::Relaxed)
    }

    /// Whether attempts have failed since the last success. Only the first caller gets `true`, and must close the
    /// breaker.
    pub(crate) fn take_failures(&self) -> bool {
        self.has_failures() && self.has_failures.swap(false, Ordering::Relaxed)
    }
}

/// A running attempt.
#[derive(Debug)]
pub(super) struct Running(Arc<Served>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// All endpoints of a recovery.
#[derive(Debug, Default)]
pub(super) struct Endpoints(Mutex<Vec<Weak<Served>>>);

impl Endpoints {
    /// Adds an endpoint for as long as the result is held.
    pub(super) fn add(&self, layer: ServedLayer) -> Arc<Served> {
        let served = Arc::new(Served::new(layer));
        let mut all = self.lock();
        all.retain(|served| served.strong_count() > 0);
        all.push(Arc::downgrade(&served));
        served
    }

    /// All endpoints in the order of their names, without duplicates.
    pub(super) fn all(&self) -> Vec<Arc<Served>> {
        let mut served: Vec<_> = self.lock().iter().filter_map(Weak::upgrade).collect();
        served.sort_by(|a, b| a.endpoint.cmp(&b.endpoint));
        served.dedup_by(|later, first| later.endpoint == first.endpoint);
        served
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Served>>> {
        // Nothing panics while it holds the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
