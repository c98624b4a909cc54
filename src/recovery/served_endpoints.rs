//! The endpoints that a recovery serves: those of the layers that hold its handle.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::time::Instant;

use super::breaker::{Breaker, BreakerState};
use super::dead::DeadReport;
use super::schedule::Schedule;

/// How often an attempt that reaches no layer is told, and tried while none reaches it.
pub(super) const UNREACHED_INTERVAL: Duration = Duration::from_secs(60);

/// For how long after an attempt has reached the layer the others are tried, too, whatever some of them reach: what was kept
/// before a deploy may have a path that is gone, and holds up nothing else.
const REACHED_FOR: Duration = Duration::from_secs(10 * 60);

/// An endpoint whose layer keeps deliveries, for as long as the layer or a service of it exists.
#[derive(Debug)]
pub(crate) struct Served {
    pub(super) endpoint: Arc<str>,
    pub(super) schedule: Schedule,
    pub(super) breaker: Breaker,
    settings: Mutex<ServedSettings>,
    /// How many attempts of recovery are running.
    running: AtomicUsize,
    /// When it was its turn last.
    turn: AtomicU64,
    pub(super) breaker_state: BreakerState,
    reach: Mutex<Reach>,
}

/// Whether the attempts of this process reach the layer of an endpoint. Not in the database, since another process may have
/// another router: during a deploy, for example.
#[derive(Debug, Default)]
struct Reach {
    /// When an attempt has last reached it.
    reached_at: Option<Instant>,
    /// When it was last told that one has not.
    unreached_at: Option<Instant>,
}

/// A layer that keeps deliveries.
pub(crate) struct ServedLayer {
    pub(crate) endpoint: Arc<str>,
    pub(crate) schedule: Schedule,
    pub(crate) breaker: Breaker,
    pub(crate) settings: ServedSettings,
}

/// What may change until the layer makes a service.
#[derive(Clone, Debug)]
pub(crate) struct ServedSettings {
    /// The longest time that an attempt takes.
    pub(crate) longest_attempt: Duration,
    pub(crate) dead_report: DeadReport,
}

impl Served {
    fn new(layer: ServedLayer) -> Self {
        Self {
            endpoint: layer.endpoint,
            schedule: layer.schedule,
            breaker: layer.breaker.within_bounds(),
            settings: Mutex::new(layer.settings),
            running: AtomicUsize::new(0),
            turn: AtomicU64::new(0),
            breaker_state: BreakerState::default(),
            reach: Mutex::default(),
        }
    }

    /// The layer makes a service.
    pub(crate) fn set(&self, settings: ServedSettings) {
        *self.lock_settings() = settings;
    }

    pub(super) fn longest_attempt(&self) -> Duration {
        self.lock_settings().longest_attempt
    }

    pub(super) fn dead_report(&self) -> DeadReport {
        self.lock_settings().dead_report.clone()
    }

    fn lock_settings(&self) -> MutexGuard<'_, ServedSettings> {
        // Nothing panics while it holds the lock.
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an attempt until the guard is dropped.
    pub(super) fn run(self: &Arc<Self>) -> Running {
        self.running.fetch_add(1, Ordering::Relaxed);
        Running(self.clone())
    }

    pub(super) fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    /// An attempt has reached the layer.
    pub(super) fn note_reached(&self) {
        self.lock_reach().note_reached();
    }

    /// An attempt has reached no layer. Returns whether it is time to tell that.
    pub(super) fn note_unreached(&self) -> bool {
        self.lock_reach().note_unreached()
    }

    /// If no attempt reaches the layer: how long until the next one is tried.
    pub(super) fn unreached_wait(&self) -> Option<Duration> {
        self.lock_reach().unreached_wait()
    }

    fn lock_reach(&self) -> MutexGuard<'_, Reach> {
        // Nothing panics while it holds the lock.
        self.reach.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It is its turn.
    pub(super) fn set_turn(&self, turn: u64) {
        self.turn.store(turn, Ordering::Relaxed);
    }

    pub(super) fn turn(&self) -> u64 {
        self.turn.load(Ordering::Relaxed)
    }

    /// An attempt has failed.
    pub(crate) fn note_failure(&self) {
        self.breaker_state
            .has_failures
            .store(true, Ordering::Relaxed);
    }

    /// Whether attempts have failed since the last success. Only the first caller gets to know, and
    /// closes the breaker.
    pub(crate) fn take_failures(&self) -> bool {
        self.breaker_state.has_failures.load(Ordering::Relaxed)
            && self
                .breaker_state
                .has_failures
                .swap(false, Ordering::Relaxed)
    }

    /// Whether the breaker is open, as the database has it.
    pub(super) fn set_open(&self, is_open: bool) {
        let endpoint = &*self.endpoint;
        if self.breaker_state.is_open.swap(is_open, Ordering::Relaxed) == is_open {
            return;
        }
        if is_open {
            tracing::warn!(
                endpoint,
                "webhook recovery probes this endpoint: too many deliveries have failed in a row, so \
                 the others wait without using up attempts"
            );
        } else {
            tracing::info!(endpoint, "webhook recovery no longer probes this endpoint");
        }
    }
}

impl Reach {
    fn note_reached(&mut self) {
        self.reached_at = Some(Instant::now());
    }

    fn note_unreached(&mut self) -> bool {
        let told_at = &mut self.unreached_at;
        let is_told = told_at.is_some_and(|at| at.elapsed() < UNREACHED_INTERVAL);
        if !is_told {
            *told_at = Some(Instant::now());
        }
        !is_told
    }

    fn unreached_wait(&self) -> Option<Duration> {
        let is_reached = self.reached_at.is_some_and(|at| at.elapsed() < REACHED_FOR);
        let unreached_at = self.unreached_at.filter(|_| !is_reached)?;
        Some(UNREACHED_INTERVAL.saturating_sub(unreached_at.elapsed()))
    }
}

/// A running attempt.
#[derive(Debug)]
pub(super) struct Running(Arc<Served>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
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

    /// Each once, by name.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn while_nothing_is_reached_one_is_tried_and_told_in_each_minute() {
        let mut reach = Reach::default();
        assert_eq!(reach.unreached_wait(), None);
        for _ in 0..3 {
            assert!(reach.note_unreached());
            assert!(!reach.note_unreached());
            assert_eq!(reach.unreached_wait(), Some(UNREACHED_INTERVAL));
            tokio::time::advance(UNREACHED_INTERVAL).await;
            assert_eq!(reach.unreached_wait(), Some(Duration::ZERO));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_reaches_no_layer_holds_up_nothing_for_as_long_as_something_reaches_it() {
        let mut reach = Reach::default();
        reach.note_unreached();
        for _ in 0..3 {
            reach.note_reached();
            assert_eq!(reach.unreached_wait(), None);
            tokio::time::advance(UNREACHED_INTERVAL).await;
            reach.note_unreached();
            assert_eq!(reach.unreached_wait(), None);
        }
        tokio::time::advance(REACHED_FOR).await;
        assert!(reach.unreached_wait().is_some());
    }
}
