//! `Retention`: deletion on a schedule, in a background task.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::PgPool;

use super::pass::{Pass, TURN};
use super::{PruneError, Pruned};
use crate::recovery::Begin;
use crate::tasks_and_errors::background::Background;
use crate::tasks_and_errors::error_chain::ErrorChain;
use crate::tasks_and_errors::random::random_fraction;
use crate::tasks_and_errors::stop_signal::Stop;
use crate::transaction::{Environment, Store};

/// The longest interval, far below what a `Duration` can hold.
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The shortest interval.
const SHORTEST: Duration = Duration::from_millis(10);

/// How long a batch may continue after it was asked to stop. After that, it is cancelled and rolled back.
const GRACE: Duration = Duration::from_secs(10);

/// The longest wait before the first round.
const SOON: Duration = Duration::from_secs(60);

/// The longest time that it may take to read the environment of the database.
const LOOK_TIMEOUT: Duration = Duration::from_secs(10);

/// Deletes old deliveries on a schedule, in a background task.
///
/// Add it to the handle of recovery ([`Recovery::with`](crate::Recovery::with)), or [spawn](Self::spawn) it. In a
/// database that has an [environment](crate::Recovery::environment), it deletes only if it was added to a handle.
///
/// Run it in every process, or in one. Only one process prunes a database at a time, and the others skip the round.
///
/// It deletes rows that are older than the given age, in batches of 1000. However short the age is, it keeps deliveries
/// that their provider may still redeliver ([`Provider::redelivery_window`](crate::Provider::redelivery_window)). The
/// interval between rounds varies by a tenth, and the first round starts within a minute, so that processes that start
/// together do not prune together. The number of deleted rows is logged and, with the feature `metrics`, counted. An
/// error is logged, and the next round tries again.
///
/// A round finds old rows by an index on their time, so its cost depends on the number of rows that it deletes, and not
/// on the size of the table. It works a quarter of the time, and pauses in between. A round that takes longer than the
/// interval delays the next one.
///
/// ```no_run
/// # async fn main_(pool: sqlx::PgPool) {
/// use std::time::Duration;
/// use idempotent_webhook::Retention;
///
/// let retention = Retention::new(pool, Duration::from_secs(45 * 24 * 60 * 60)).spawn();
/// // … serve …
/// let pruned = retention.stop().await;
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "retention does nothing until it is spawned"]
pub struct Retention {
    pool: PgPool,
    older_than: Duration,
    every: Duration,
    erase_dead_after: Option<Duration>,
}

impl Retention {
    /// Deletes rows that are older than `older_than`, every hour.
    pub fn new(pool: PgPool, older_than: Duration) -> Self {
        Self {
            pool,
            older_than,
            every: Duration::from_secs(60 * 60),
            erase_dead_after: None,
        }
    }

    /// Sets the time between two rounds, plus or minus a tenth, at least 10 milliseconds. Default: an hour.
    pub fn every(mut self, interval: Duration) -> Self {
        self.every = interval.max(SHORTEST);
        self
    }

    /// Erases the content of a delivery this long after it died: its request, and the reasons of its failures, as
    /// [`Endpoint::erase`](crate::Endpoint::erase) does. This happens even if the provider has sent the delivery again
    /// since. After that, the delivery cannot be retried, and no longer counts as dead.
    ///
    /// Default: the content stays until the delivery is deleted because of its age.
    pub fn erase_dead_after(mut self, time: Duration) -> Self {
        self.erase_dead_after = Some(time);
        self
    }

    /// Starts the background task on the current tokio runtime.
    ///
    /// It runs until [`RetentionTask::stop`] or the end of the runtime. Dropping the handle does
    /// not stop it.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn spawn(self) -> RetentionTask {
        let total = Arc::<Mutex<Pruned>>::default();
        RetentionTask {
            task: self.begin_with(None, total.clone()),
            total,
        }
    }

    /// Starts the background task. `environment` is `None` if the task does not belong to a handle of recovery.
    fn begin_with(self, environment: Option<Environment>, total: Arc<Mutex<Pruned>>) -> Background {
        Background::spawn("retention", move |stop| {
            let environment = environment.clone();
            self.clone().run(environment, stop, total.clone())
        })
    }

    async fn run(self, of_handle: Option<Environment>, mut stop: Stop, total: Arc<Mutex<Pruned>>) {
        let environment = of_handle.clone().unwrap_or_default();
        let mut wait = first_wait(self.every);
        while stop.rest(wait).await.is_some() {
            let mut round = Pruned::default();
            let mut asked = stop.clone();
            let work = Pass::round(
                &self.pool,
                self.older_than,
                self.erase_dead_after,
                &environment,
                &mut asked,
            );
            let ended = stop.or_after(GRACE, work.run(&mut round)).await;
            let interval = match ended {
                Some(Ok(true)) | None => self.every,
                // Another process has the turn. If that process was killed, its turn expires soon.
                Some(Ok(false)) => {
                    if of_handle.is_none() {
                        self.report_environment().await;
                    }
                    self.every.min(TURN)
                }
                Some(Err(error)) => {
                    let error = PruneError::Database(error);
                    tracing::warn!(error = %ErrorChain(&error), "webhook retention failed");
                    self.every
                }
            };
            if round != Pruned::default() {
                tracing::info!(
                    deliveries = round.deliveries,
                    subjects = round.subjects,
                    failures = round.failures,
                    "webhook retention pruned"
                );
            }
            // Nothing panics while it holds the lock.
            *total.lock().unwrap_or_else(PoisonError::into_inner) += round;
            wait = interval.min(YEAR).mul_f64(0.9 + 0.2 * random_fraction());
        }
    }
}

impl Retention {
    /// Logs an error if the round was skipped because the database has an environment. This is for retention without a
    /// handle of recovery, because a handle would report it.
    async fn report_environment(&self) {
        let store = Store::new(self.pool.clone(), LOOK_TIMEOUT, Duration::ZERO);
        match store.has_environment().await {
            Ok(true) => tracing::error!(
                "webhook retention deletes nothing: the database has an environment, and this retention has none. Add it to \
                 the handle of recovery, by `Recovery::with`"
            ),
            Ok(false) => {}
            Err(error) => {
                tracing::debug!(%error, "could not look at the environment of the webhook database")
            }
        }
    }
}

impl Begin for Retention {
    #[expect(private_interfaces, reason = "nobody outside can call it")]
    fn begin(self, environment: &Environment) -> Background {
        self.begin_with(Some(environment.clone()), Arc::default())
    }
}

/// The handle of a running [`Retention`].
#[derive(Debug)]
pub struct RetentionTask {
    task: Background,
    /// The rows that were deleted in all rounds.
    total: Arc<Mutex<Pruned>>,
}

impl RetentionTask {
    /// Waits for the current batch, stops, and returns how many rows were deleted in all rounds. If Postgres does not
    /// answer, the batch is cancelled after ten seconds, and rolled back.
    pub async fn stop(self) -> Pruned {
        self.task.stop().await;
        *self.total.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The wait before the first round. It is short, so that a process that lives for less than the interval runs a round
/// as well.
fn first_wait(every: Duration) -> Duration {
    every.min(SOON).mul_f64(random_fraction())
}

#[cfg(test)]
mod tests {
    use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

    use super::*;

    #[test]
    fn the_first_round_comes_within_a_minute_however_long_the_interval() {
        assert!(first_wait(Duration::MAX) <= SOON);
        assert!(first_wait(Duration::from_millis(10)) <= Duration::from_millis(10));
        assert_eq!(first_wait(Duration::ZERO), Duration::ZERO);
    }

    #[tokio::test]
    async fn no_interval_is_so_short_that_it_never_rests() {
        let pool = PgPoolOptions::new().connect_lazy_with(PgConnectOptions::new());
        assert_eq!(
            Retention::new(pool, YEAR).every(Duration::ZERO).every,
            SHORTEST
        );
    }

    #[test]
    fn fractions_differ_and_are_fractions() {
        let fractions: Vec<f64> = (0..100).map(|_| random_fraction()).collect();
        assert!(fractions.iter().all(|f| (0.0..=1.0).contains(f)));
        assert!(fractions.iter().any(|f| *f < 0.5) && fractions.iter().any(|f| *f > 0.5));
    }
}
