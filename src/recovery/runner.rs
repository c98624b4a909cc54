//! The loop of recovery: takes due deliveries, and runs them through the router.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{Method, StatusCode};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};

use super::ahead::Ahead;
use super::failed_attempt::FailedAttempt;
use super::kept::{AttemptBy, GivenBack, Wanted};
use super::router::Router;
use super::served_endpoints::{Running, Served};
use super::shared::Shared;
use super::taken::{Place, RecoveryAttempt, Taken, Unreadable};
use crate::metrics;
use crate::metrics::outcome::Outcome;
use crate::provider::delivery::Delivery;
use crate::tasks_and_errors::background::guarded;
use crate::tasks_and_errors::handler_error::Next;
use crate::tasks_and_errors::stop_signal::Stop;
use crate::transaction::{DatabaseError, RowKeys};

/// The shortest wait of a delivery after its attempt has reached no layer of this process.
const UNREACHED_WAIT: Duration = Duration::from_secs(60);

/// How often recovery looks at all endpoints while one of them has a backlog.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The wait if rows are due but none can be taken, because transactions hold them: for example, the transaction of
/// a request that has claimed its delivery.
const LOCKED_WAIT: Duration = Duration::from_secs(1);

/// The longest time of a *look*, which queries the endpoints for due deliveries, and of a *take*, which marks a
/// batch of due deliveries as taken, in several steps.
const LONGEST_LOOK: Duration = Duration::from_secs(10);
const LONGEST_TAKE: Duration = Duration::from_secs(40);

/// How long a running statement may go on after recovery was asked to stop. If the statement were interrupted, it might
/// already have taken deliveries. Each of these deliveries would seem to have an attempt that did not end.
const GRACE: Duration = Duration::from_secs(2);

/// A take counts one attempt for each delivery. If the code in this file records a failure, the handler was not called,
/// so this attempt is subtracted.
const COUNTED_BY_TAKE: i32 = 1;

pub(super) struct Runner {
    pub(super) shared: Arc<Shared>,
    pub(super) router: Router,
    pub(super) poll_interval: Duration,
    /// The running attempts.
    pub(super) attempts: Mutex<JoinSet<()>>,
}

/// The result of an attempt by [`Recovery::run_due`](crate::Recovery::run_due).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AttemptResult {
    /// The delivery.
    pub delivery: Delivery,
    /// What the layer has answered. `None` if the layer was not reached or has not answered in time, if the request
    /// could not be read, or if earlier attempts did not end.
    pub outcome: Option<Outcome>,
}

/// The result of a look: what there is to do until the next one.
struct Agenda {
    /// The endpoints with due deliveries.
    due: Vec<DueEndpoint>,
    looked_at: Instant,
    has_taken: bool,
    /// The time until the next look, if nothing can be taken and no notification arrives.
    wait: Duration,
    /// The longest attempt of all endpoints. After this time, a running attempt has ended, and its slot is free.
    longest_attempt: Duration,
}

struct DueEndpoint {
    served: Arc<Served>,
    /// Whether the breaker is open.
    is_open: bool,
    /// Whether more may be due than was taken.
    has_more: bool,
    ahead: Ahead,
}

impl Runner {
    pub(super) async fn run(self: Arc<Self>, mut stop: Stop) {
        self.shared.stay_alive();
        let mut turn = 0;
        while !stop.is_asked() {
            // Registered before the look, so that no notification is missed in between.
            let news = self.shared.news.notified();
            stop.takes(LONGEST_LOOK);
            let Some(mut agenda) = stop.or(self.look()).await else {
                break;
            };
            self.work_off(&mut agenda, &mut turn, &mut stop).await;
            // Without this wait, the loop would repeat its query for due deliveries, which it cannot take, as fast as
            // Postgres answers.
            if !agenda.has_taken {
                stop.takes(agenda.wait);
                let _ = stop.or(tokio::time::timeout(agenda.wait, news)).await;
            }
        }
        stop.progress().unlimited();
        let mut attempts = std::mem::take(&mut *self.attempts());
        while attempts.join_next().await.is_some() {}
        // This waits until the layers run nothing in the background: all slots are free then.
        let _ = self.shared.all_slots().await;
        self.shared.liveness.leave().await;
    }

    /// Takes and runs due deliveries, until it is time for another look or to stop.
    async fn work_off(self: &Arc<Self>, agenda: &mut Agenda, turn: &mut u64, stop: &mut Stop) {
        while !agenda.is_over() {
            stop.takes(agenda.longest_attempt + LONGEST_LOOK);
            let slot = self.free_slot_until(agenda.ahead_until());
            let Some(slot) = stop.or(slot).await else {
                break;
            };
            while self.attempts().try_join_next().is_some() {}
            for endpoint in &mut agenda.due {
                if endpoint.ahead.is_over(&endpoint.served) {
                    self.give_back_ahead(endpoint);
                }
            }
            let Some(slot) = slot else {
                continue;
            };
            let Some(endpoint) = agenda.least_busy() else {
                break;
            };
            *turn += 1;
            endpoint.served.set_turn(*turn);
            if let Some(taken) = endpoint.ahead.next() {
                self.begin(taken, slot, &endpoint.served, stop);
                continue;
            }
            stop.takes(LONGEST_TAKE);
            let Some(taken) = stop.or_after(GRACE, self.take_for(endpoint, slot)).await else {
                break;
            };
            let Ok(taken) = taken.inspect_err(could_not_take) else {
                agenda.wait = self.poll_interval;
                break;
            };
            let has_taken = !taken.is_empty();
            for (taken, slot) in taken {
                self.begin(taken, slot, &endpoint.served, stop);
            }
            agenda.has_taken |= has_taken;
        }
        for endpoint in &mut agenda.due {
            self.give_back_ahead(endpoint);
        }
    }

    /// Takes deliveries of an endpoint, for this slot and for other free slots. If it takes more deliveries than there
    /// are slots, the others are taken ahead: they wait for a slot (`ahead.rs`).
    async fn take_for(
        &self,
        endpoint: &mut DueEndpoint,
        slot: OwnedSemaphorePermit,
    ) -> Result<Vec<(Taken, OwnedSemaphorePermit)>, DatabaseError> {
        let slots = self.more_slots(slot);
        let limit = endpoint.ahead.limit(slots.len(), &endpoint.served);
        let ended = endpoint.served.ended();
        let mut taken = self.take(endpoint, limit).await?.into_iter();
        endpoint.has_more = taken.len() == limit;
        let begins = taken.by_ref().take(slots.len());
        // With `zip` alone, one more delivery would be taken from the iterator and dropped.
        let begins: Vec<_> = begins.collect();
        endpoint.ahead.put(taken, ended);
        Ok(begins.into_iter().zip(slots).collect())
    }

    /// Starts the attempt at a taken delivery.
    fn begin(
        self: &Arc<Self>,
        taken: Taken,
        slot: OwnedSemaphorePermit,
        served: &Arc<Served>,
        stop: &Stop,
    ) {
        let running = served.run();
        let (runner, served, mut stop) = (self.clone(), served.clone(), stop.clone());
        self.spawn(async move {
            let ran = runner.run_taken(taken, running, slot, &served, &mut stop);
            ran.await;
        });
    }

    /// Gives back deliveries that were taken ahead, before there were slots for them, and have not started.
    fn give_back_ahead(self: &Arc<Self>, endpoint: &mut DueEndpoint) {
        let taken = endpoint.ahead.take_all();
        if taken.is_empty() {
            return;
        }
        let (shared, served) = (self.shared.clone(), endpoint.served.clone());
        self.spawn(async move {
            let attempts = || taken.iter().map(|taken| &taken.attempt);
            let keys = attempts().map(RecoveryAttempt::key);
            let keys: RowKeys = keys
                .map(|(tenant, id)| (tenant.to_owned(), id.to_owned()))
                .collect();
            let takes: Vec<i64> = attempts().map(|attempt| attempt.take().takes).collect();
            let store = &shared.store;
            let given_back = store.give_back_ahead(&served.endpoint, &keys, &takes);
            note_given_back(tokio::time::timeout(GRACE, given_back).await);
            shared.news.notify_waiters();
        });
    }

    /// Spawns work that the loop waits for at its end.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.attempts().spawn(async {
            guarded("attempt", work).await;
        });
    }

    fn attempts(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the attempt, or gives the delivery back if recovery is asked to stop before the attempt.
    async fn run_taken(
        &self,
        taken: Taken,
        running: Running,
        slot: OwnedSemaphorePermit,
        served: &Arc<Served>,
        stop: &mut Stop,
    ) {
        if let Some(slot) = self.slot_or_all_slots(&taken, slot, stop).await {
            // Some attempts run alone, so the loop may have to wait for several such attempts in a row.
            stop.takes_longer(served.longest_attempt() + LONGEST_LOOK);
            taken.attempt.hold(Place {
                _running: running,
                _slot: slot,
            });
            self.attempt(taken, served).await;
            stop.takes_longer(served.longest_attempt() + LONGEST_LOOK);
            return;
        }
        let attempt = &taken.attempt;
        let delivery = served.delivery_of(attempt);
        let store = &self.shared.store;
        let given_back = store.give_back(
            &delivery,
            attempt.take(),
            Duration::ZERO,
            GivenBack::NotBegun,
        );
        note_given_back(tokio::time::timeout(GRACE, given_back).await);
    }

    /// A free slot, or `None` if no slot is free by `until`.
    async fn free_slot_until(&self, until: Option<Instant>) -> Option<OwnedSemaphorePermit> {
        match until {
            Some(until) => timeout_at(until, self.free_slot()).await.ok(),
            None => Some(self.free_slot().await),
        }
    }

    async fn free_slot(&self) -> OwnedSemaphorePermit {
        match self.shared.slots.clone().acquire_owned().await {
            Ok(slot) => slot,
            // The semaphore is never closed.
            Err(_) => std::future::pending().await,
        }
    }

    /// This slot and half of the other free slots. The other half is left to other endpoints.
    fn more_slots(&self, slot: OwnedSemaphorePermit) -> Vec<OwnedSemaphorePermit> {
        let mut slots = vec![slot];
        for _ in 0..self.shared.slots.available_permits() / 2 {
            slots.extend(self.shared.slots.clone().try_acquire_owned());
        }
        slots
    }

    /// Asks Postgres which endpoints have due deliveries.
    async fn look(&self) -> Agenda {
        let mut agenda = Agenda {
            due: Vec::new(),
            looked_at: Instant::now(),
            has_taken: false,
            wait: self.poll_interval,
            longest_attempt: Duration::ZERO,
        };
        let endpoints = self.shared.endpoints.all();
        let longest = endpoints.iter().map(|served| served.longest_attempt());
        agenda.longest_attempt = longest.max().unwrap_or_default();
        let names: Vec<&str> = endpoints.iter().map(|served| &*served.endpoint).collect();
        let next = match self.shared.store.next(&names).await {
            Ok(next) => next,
            Err(error) => {
                could_not_take(&error);
                return agenda;
            }
        };
        // The time is measured after the answer of Postgres, no matter how long the answer took.
        agenda.looked_at = Instant::now();
        for served in &endpoints {
            let Some(next) = next.iter().find(|next| *next.endpoint == *served.endpoint) else {
                continue;
            };
            metrics::oldest_due(&served.endpoint, next.overdue);
            if next.has_failures {
                served.note_failure();
            }
            match next.wait {
                Some(Duration::ZERO) => {
                    agenda.wait = agenda.wait.min(LOCKED_WAIT);
                    agenda.due.push(DueEndpoint {
                        served: served.clone(),
                        is_open: next.is_open,
                        has_more: true,
                        ahead: Ahead::default(),
                    });
                }
                Some(wait) => agenda.wait = agenda.wait.min(wait),
                None => {}
            }
        }
        agenda
    }

    /// The slot for an attempt, or all slots if it runs alone. `None` if recovery is asked to stop before the
    /// attempt starts.
    async fn slot_or_all_slots(
        &self,
        taken: &Taken,
        slot: OwnedSemaphorePermit,
        stop: &mut Stop,
    ) -> Option<OwnedSemaphorePermit> {
        if taken.has_failed_unfinished() {
            return Some(slot);
        }
        if stop.is_asked() {
            return None;
        }
        if !taken.runs_alone() {
            return Some(slot);
        }
        drop(slot);
        // The semaphore is never closed.
        stop.or(self.shared.all_slots()).await?.ok()
    }

    /// Takes deliveries of an endpoint.
    async fn take(
        &self,
        endpoint: &DueEndpoint,
        limit: usize,
    ) -> Result<Vec<Taken>, DatabaseError> {
        let (store, served) = (&self.shared.store, &endpoint.served);
        let taker = self.shared.taker().await?;
        let is_probe = endpoint.is_open;
        if is_probe && !store.start_probe(&served.endpoint, served.breaker).await? {
            return Ok(Vec::new());
        }
        let wanted = Wanted {
            limit: if is_probe { 1 } else { limit },
            due_at: None,
            is_probe,
        };
        let rows = store.take(&served.endpoint, wanted, &taker).await?;
        Taken::read_all(&rows, served, &taker, store).await
    }

    /// Makes all attempts that are due now.
    pub(super) async fn run_due(&self) -> sqlx::Result<Vec<AttemptResult>> {
        let results = self.try_run_due().await;
        if !self.shared.is_spawned() {
            self.shared.liveness.leave().await;
        }
        results.map_err(DatabaseError::into_sqlx)
    }

    async fn try_run_due(&self) -> Result<Vec<AttemptResult>, DatabaseError> {
        let (store, liveness) = (&self.shared.store, &self.shared.liveness);
        liveness.wait_until_known().await?;
        let wanted = Wanted {
            limit: 1,
            due_at: Some(store.time().await?),
            is_probe: false,
        };
        let mut results = Vec::new();
        for served in self.shared.endpoints.all() {
            loop {
                let taker = self.shared.taker().await?;
                let rows = store.take(&served.endpoint, wanted, &taker).await?;
                if rows.is_empty() {
                    break;
                }
                for taken in Taken::read_all(&rows, &served, &taker, store).await? {
                    let attempt = taken.attempt.clone();
                    self.attempt(taken, &served).await;
                    results.push(AttemptResult {
                        delivery: served.delivery_of(&attempt),
                        outcome: attempt.outcome(),
                    });
                }
            }
        }
        Ok(results)
    }

    async fn attempt(&self, taken: Taken, served: &Arc<Served>) {
        let has_failed_unfinished = taken.has_failed_unfinished();
        let Taken {
            attempt, request, ..
        } = taken;
        if has_failed_unfinished {
            let reason = "its attempts did not end: the process was killed, or did not answer";
            let failed =
                FailedAttempt::new(StatusCode::SERVICE_UNAVAILABLE, reason, Next::Scheduled);
            return self.fail(&failed, &attempt, served).await;
        }
        let request = match request {
            Ok(request) => request,
            Err(Unreadable::Damaged) => {
                let reason = "the kept request cannot be read";
                let failed =
                    FailedAttempt::new(StatusCode::INTERNAL_SERVER_ERROR, reason, Next::Dead);
                return self.fail(&failed, &attempt, served).await;
            }
            Err(Unreadable::OtherFormat) => {
                if served.note_unreached() {
                    warn_of_other_format(&attempt, served);
                }
                return self.unreached(None, &attempt, served).await;
            }
        };
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let sent = self.router.send(request);
        let sent = tokio::time::timeout(served.longest_attempt(), sent).await;
        if !attempt.was_reached() {
            let status = sent.ok().flatten();
            served.dead_report().counts.metrics.unreached();
            if served.note_unreached() {
                warn_of_unreached(&attempt, served, status, &method, &path);
            }
            self.unreached(status, &attempt, served).await;
        }
        self.shared.news.notify_waiters();
    }

    /// Records a failure for an attempt that was counted when the delivery was taken, and then not made.
    async fn fail(&self, failed: &FailedAttempt, attempt: &RecoveryAttempt, served: &Arc<Served>) {
        let delivery = served.delivery_of(attempt);
        let written = self
            .shared
            .store
            .fail(
                failed,
                &delivery,
                attempt.take(),
                COUNTED_BY_TAKE,
                served,
                AttemptBy::Recovery,
            )
            .await;
        match written {
            Ok(Some(kept)) if kept.died => {
                let report = served.dead_report();
                report.send(&delivery, failed.reason(), kept.takes).await;
            }
            Ok(_) => {}
            // The delivery is taken again in a few seconds.
            Err(error) => not_written(&error),
        }
    }

    /// Subtracts an attempt that has reached no layer.
    async fn unreached(
        &self,
        status: Option<StatusCode>,
        attempt: &RecoveryAttempt,
        served: &Served,
    ) {
        let delivery = served.delivery_of(attempt);
        let given_back = self
            .shared
            .store
            .give_back(
                &delivery,
                attempt.take(),
                UNREACHED_WAIT,
                GivenBack::Unreached(status),
            )
            .await;
        if let Err(error) = given_back {
            not_written(&error);
        }
    }
}

/// Logs the path without its query, which may contain a token.
fn warn_of_unreached(
    attempt: &RecoveryAttempt,
    served: &Served,
    status: Option<StatusCode>,
    method: &Method,
    path: &str,
) {
    let delivery = served.delivery_of(attempt);
    tracing::warn!(
        endpoint = delivery.endpoint(),
        delivery_id = delivery.id().as_str(),
        method = method.as_str(),
        path,
        status = status.map(|status| status.as_u16()),
        "webhook recovery: no layer of this endpoint was reached, so this does not count as an attempt; the router \
         given to `Recovery::spawn` has no such route, or a middleware has refused the request (`Keep::headers`, \
         `Recovery::prepare_request`); the delivery is tried again in a minute, and then after twice as long each \
         time; for other deliveries of the endpoint, this is not logged again for a minute"
    );
}

fn warn_of_other_format(attempt: &RecoveryAttempt, served: &Served) {
    let delivery = served.delivery_of(attempt);
    tracing::warn!(
        endpoint = delivery.endpoint(),
        delivery_id = delivery.id().as_str(),
        "webhook recovery: another version of idempotent-webhook has kept this delivery, in a format that this \
         one does not read; the delivery waits for a process of that version: it is tried again in a minute, and \
         then after twice as long each time"
    );
}

fn could_not_take(error: &DatabaseError) {
    tracing::warn!(%error, "webhook recovery could not look for due deliveries");
}

/// Logs a failed give-back. The delivery becomes free later, once this process gives up the number under which it took
/// the delivery.
fn note_given_back<T>(written: Result<Result<T, DatabaseError>, Elapsed>) {
    match written {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => not_written(&error),
        Err(_) => not_written(&DatabaseError::TimedOut),
    }
}

fn not_written(error: &DatabaseError) {
    tracing::warn!(%error, "webhook recovery could not record the result of an attempt");
}

impl Agenda {
    /// The endpoint with the fewest running attempts, so that an endpoint with slow handlers does not keep another one
    /// waiting. If several endpoints have equally few running attempts, this is the endpoint that this function has not
    /// returned for the longest time.
    fn least_busy(&mut self) -> Option<&mut DueEndpoint> {
        let due = self.due.iter_mut();
        due.min_by_key(|endpoint| (endpoint.served.running(), endpoint.served.turn()))
    }

    /// The time until which the deliveries that are taken ahead may wait: the earliest of all endpoints.
    fn ahead_until(&self) -> Option<Instant> {
        let due = self.due.iter();
        due.filter_map(|endpoint| endpoint.ahead.until()).min()
    }

    /// Whether it is time for another look, or nothing more is due. Deliveries that were taken ahead are handled first.
    fn is_over(&mut self) -> bool {
        let is_late = self.looked_at.elapsed() > LOOK_INTERVAL;
        self.due
            .retain(|endpoint| !endpoint.ahead.is_empty() || endpoint.has_more && !is_late);
        self.due.is_empty()
    }
}
