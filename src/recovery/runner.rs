//! Runs kept deliveries again, through the application's router.

use std::fmt;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use sqlx::PgPool;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tower_service::Service;

use super::attempts::{self, Breaker, Due, Taken};
use super::give_back::GiveBack;
use super::group_commit::GroupCommit;
use super::keep::{FailedAttempt, Next};
use super::presence;
use super::received;
use super::replay::Replay;
use super::schedule::{Schedule, UNHANDLED_WAIT};
use super::served::{self, Served};
use super::slots::{Place, Room, Slots};
use crate::metrics;
use crate::panic::catch_panic;
use crate::transaction::{DatabaseError, Store};

type Sent = Pin<Box<dyn Future<Output = Option<StatusCode>> + Send>>;
type SendRequest = Arc<dyn Fn(Request<Full<Bytes>>) -> Sent + Send + Sync>;
type Prepare = Arc<dyn Fn(&mut Parts) + Send + Sync>;

/// If the process handles requests meanwhile, the next attempt waits for so many times as long as this
/// one took. With two at a time and all that belongs to an attempt, a stream of requests that takes all
/// of the CPU keeps nine tenths of its rate, as `cargo bench --bench recovery -- live` measures.
const REST: u32 = 6;

/// The longest rest after an attempt.
const MAX_REST: Duration = Duration::from_secs(1);

/// For each step of its own on the database.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Runs kept deliveries again until they are processed or dead, in a background task.
///
/// It takes the application's router and sends kept deliveries through it, so that the handler
/// has its path parameters, its state and its middlewares. The layer recognizes them by a private
/// mark and does not verify them again. Run it in every process that serves the routes. Each process
/// only takes deliveries of endpoints that it serves, with
/// [`keep_failed`](crate::IdempotentWebhook::keep_failed) on the layer.
///
/// ```no_run
/// use axum::{Router, http::StatusCode, routing::post};
/// use idempotent_webhook::{DedupeTx, IdempotentWebhook, Recovery, Secret, presets};
///
/// # async fn push(_: DedupeTx) {}
/// # async fn main_(pool: sqlx::PgPool, secret: Secret) -> std::io::Result<()> {
/// # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// let github = IdempotentWebhook::new(pool.clone(), "deployments", presets::github(secret))
///     .keep_failed();
/// let app: Router = Router::new().route("/webhooks/github", post(push).layer(github));
///
/// let recovery = Recovery::new(pool, app.clone()).spawn();
/// let stopped = async {
///     let _ = tokio::signal::ctrl_c().await;
/// };
/// axum::serve(listener, app).with_graceful_shutdown(stopped).await?;
/// recovery.stop().await;
/// # Ok(())
/// # }
/// ```
///
/// An attempt of recovery and one of the provider queue for the same claim, so only one of them
/// commits. An attempt is counted before it runs: a handler that kills its process uses up its
/// attempts. An attempt that did not reach the handler is not counted: Postgres was away, or no
/// route handles the delivery.
///
/// After [`breaker`](Self::breaker) failures of different deliveries in a row, one delivery of
/// the endpoint is tried every 30 seconds, and the others wait without using up attempts. The failures
/// are those of recovery and of [`accept_first`](crate::IdempotentWebhook::accept_first). Requests of the
/// provider are not counted, and still call the handler.
#[must_use = "recovery does nothing until it is spawned"]
#[derive(Clone)]
pub struct Recovery {
    pool: PgPool,
    store: Store,
    send: SendRequest,
    prepare: Option<Prepare>,
    concurrency: usize,
    poll_interval: Duration,
    breaker: Breaker,
    give_backs: GroupCommit<GiveBack>,
}

/// A delivery that was taken.
struct Attempt {
    due: Due,
    served: Arc<Served>,
    place: Place,
}

impl Recovery {
    /// Recovery of the deliveries that `service` handles, such as a `Router`, which are kept in the
    /// database of `pool`.
    ///
    /// It takes those of all layers of the process on this database, so `service` has to have all their
    /// routes. Of two with a part of the routes each, one would take what only the other can handle: it
    /// is given back and tried again a minute later.
    pub fn new<S, R>(pool: PgPool, service: S) -> Self
    where
        S: Service<Request<Full<Bytes>>, Response = Response<R>> + Clone + Send + 'static,
        S::Future: Send,
        S::Error: Send,
        R: Send,
    {
        let service = Mutex::new(service);
        let send = move |request| -> Sent {
            let mut service = service
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            Box::pin(async move {
                std::future::poll_fn(|cx| service.poll_ready(cx))
                    .await
                    .ok()?;
                let response = service.call(request).await.ok()?;
                Some(response.status())
            })
        };
        Self {
            store: Store::new(pool.clone(), TIMEOUT, Duration::ZERO),
            pool,
            send: Arc::new(send),
            prepare: None,
            concurrency: 2,
            poll_interval: Duration::from_secs(5),
            breaker: Breaker {
                failures: 10,
                probe_interval: Duration::from_secs(30),
            },
            give_backs: GroupCommit::default(),
        }
    }

    /// How many deliveries this process runs again at the same time: at least 1, and at most half as
    /// many as the pool has connections. Default: 2.
    ///
    /// If that is less than half of the pool's connections, deliveries at their first attempt of the
    /// schedule are taken ahead, so that a backlog is worked off faster: up to four times as many wait
    /// for their turn, and lose this attempt if the process is killed meanwhile. This is while an
    /// attempt, with the rest after it, takes less than half a second.
    ///
    /// If a delivery arrives at any layer of the process during an attempt, the next one in its place
    /// begins after a rest: six times as long as the attempt took, at most a second. With a steady stream
    /// of webhooks and short attempts, recovery works at a seventh of its rate, so raise this number if a
    /// backlog does not shrink. A running attempt is never held back.
    pub fn concurrency(mut self, attempts: usize) -> Self {
        self.concurrency = attempts.clamp(1, Semaphore::MAX_PERMITS);
        self
    }

    /// How often it looks for deliveries that other processes have kept. Those of this process are
    /// known at once. Default: 5 seconds.
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.poll_interval = interval.max(Duration::from_millis(10));
        self
    }

    /// After this many failures of different deliveries of an endpoint in a row, one is tried in
    /// each `probe_interval`, until one succeeds. Default: 10 failures, 30 seconds.
    pub fn breaker(mut self, failures: u32, probe_interval: Duration) -> Self {
        self.breaker = Breaker {
            failures: i32::try_from(failures).unwrap_or(i32::MAX),
            probe_interval,
        };
        self
    }

    /// Adds to each request what the server would have added, such as `ConnectInfo`. A handler that
    /// extracts it fails otherwise, and uses up its attempts.
    ///
    /// ```
    /// use std::net::{Ipv4Addr, SocketAddr};
    ///
    /// use axum::{Router, extract::ConnectInfo};
    /// use idempotent_webhook::Recovery;
    ///
    /// # fn recovery(pool: sqlx::PgPool, app: Router) -> Recovery {
    /// Recovery::new(pool, app).prepare_request(|head| {
    ///     let nobody = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    ///     head.extensions.insert(ConnectInfo(nobody));
    /// })
    /// # }
    /// ```
    pub fn prepare_request(mut self, prepare: impl Fn(&mut Parts) + Send + Sync + 'static) -> Self {
        self.prepare = Some(Arc::new(prepare));
        self
    }

    /// Starts the background task on the current tokio runtime.
    ///
    /// It runs until [`RecoveryTask::stop`] or the end of the runtime. Dropping the handle does not
    /// stop it.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn spawn(self) -> RecoveryTask {
        let (stop, stopped) = watch::channel(false);
        RecoveryTask {
            stop,
            task: tokio::spawn(Arc::new(self).run(stopped)),
        }
    }

    async fn run(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let slots = Slots::new(self.concurrency, share_of(&self.pool));
        // The endpoint after the one that was served last comes first.
        let mut last: Option<Arc<str>> = None;
        // The next delivery may only be taken for a slot that is free.
        let mut needs_a_slot = true;
        let mut looked_ahead = Instant::now();
        let presence = presence::tell(self.store.clone(), self.pool.clone(), stop.clone());
        let presence = tokio::spawn(presence);
        if Served::on(&self.pool).is_empty() {
            tracing::warn!(
                "webhook recovery has nothing to do: no layer with `keep_failed` of this process \
                 uses the same database, by host, port and name"
            );
        }
        loop {
            let room = async {
                Some(match needs_a_slot || !slots.may_take_ahead() {
                    true => slots.slots().await,
                    false => slots.places_ahead().await,
                })
            };
            let Some(mut room) = race(asked(&mut stop, None), room).await else {
                break;
            };
            slots.fill(&mut room);
            if room.slots() == 0 && room.places_ahead() == 0 {
                // Attempts take longer meanwhile.
                continue;
            }
            // Registered before it looks, so as not to miss one in between.
            let kept = served::notified();
            let wait = match self.take(&mut last, &room).await {
                Ok(Some((taken, served))) => {
                    needs_a_slot = taken.passed_over;
                    for due in taken.due {
                        if let Some(place) = room.next_place() {
                            let attempt = Attempt {
                                due,
                                served: served.clone(),
                                place,
                            };
                            let (slots, stop) = (slots.clone(), stop.clone());
                            tokio::spawn(self.clone().begin(attempt, slots, stop));
                        }
                    }
                    if looked_ahead.elapsed() > self.poll_interval {
                        // For the metrics, which must not stand still when there is much to do.
                        let _ = self.wait().await;
                        looked_ahead = Instant::now();
                    }
                    continue;
                }
                Ok(None) if room.slots() == 0 => {
                    // It looks again when there is a slot.
                    needs_a_slot = true;
                    continue;
                }
                Ok(None) => self.wait().await.unwrap_or(self.poll_interval),
                Err(error) => {
                    tracing::warn!(%error, "webhook recovery could not look for due deliveries");
                    self.poll_interval
                }
            };
            drop(room);
            let wait = tokio::time::timeout(wait.min(self.poll_interval), kept);
            let go_on = async {
                let _ = wait.await;
                true
            };
            if !race(asked(&mut stop, false), go_on).await {
                break;
            }
        }
        slots.all_free().await;
        // It neither panics nor is aborted.
        let _ = presence.await;
    }

    /// Takes deliveries that are due, of one endpoint after the other.
    async fn take(
        &self,
        last: &mut Option<Arc<str>>,
        room: &Room,
    ) -> Result<Option<(Taken, Arc<Served>)>, DatabaseError> {
        let mut served = Served::on(&self.pool);
        let next = served.partition_point(|served| Some(&served.endpoint) <= last.as_ref());
        served.rotate_left(next);
        for served in served {
            let taken = attempts::take(&self.store, &served, self.breaker, room).await?;
            if !taken.due.is_empty() {
                *last = Some(served.endpoint.clone());
            }
            // If there was no slot for any of them, the endpoint is the next one that gets one.
            if !taken.due.is_empty() || taken.passed_over {
                return Ok(Some((taken, served)));
            }
        }
        Ok(None)
    }

    /// How long to wait until something can be taken.
    async fn wait(&self) -> Result<Duration, DatabaseError> {
        let served = Served::on(&self.pool);
        let endpoints: Vec<&str> = served.iter().map(|served| &*served.endpoint).collect();
        let upcoming = attempts::upcoming(&self.store, &endpoints, self.breaker).await?;
        for served in &served {
            let of_endpoint = upcoming
                .iter()
                .find(|next| *next.endpoint == *served.endpoint);
            let overdue = of_endpoint.map_or(Duration::ZERO, |next| next.overdue);
            metrics::oldest_due(&served.endpoint, overdue);
        }
        let next = upcoming.iter().filter_map(|next| next.wait).min();
        // What is due and cannot be taken is being taken by another process.
        let at_least = Duration::from_millis(50);
        Ok(next.map_or(self.poll_interval, |next| next.max(at_least)))
    }

    /// Makes an attempt when it has a slot, or gives the delivery back.
    async fn begin(
        self: Arc<Self>,
        attempt: Attempt,
        slots: Arc<Slots>,
        mut stop: watch::Receiver<bool>,
    ) {
        let Attempt { due, served, place } = attempt;
        let (taken, lease) = (Instant::now(), served.lease());
        let (slot, _place) = match place {
            Place::Slot(slot) => (Some(slot), None),
            Place::Ahead(place) => {
                let turn = race(asked(&mut stop, None), slots.turn(lease)).await;
                // Left when it begins, or when it has been given back.
                let place = turn.is_none().then_some(place);
                (turn, place)
            }
        };
        let Some(slot) = slot.filter(|_| !*stop.borrow()) else {
            if let Err(error) = self
                .give_backs
                .write(&self.store, GiveBack(due.replay))
                .await
            {
                tracing::warn!(%error, "could not take back an attempt of webhook recovery");
            }
            return;
        };
        let time = lease.saturating_sub(taken.elapsed());
        let (received, started) = (received::count(), Instant::now());
        self.attempt(due, &served, time).await;
        // Requests come first.
        if received::count() != received {
            let rest = tokio::time::sleep((started.elapsed() * REST).min(MAX_REST));
            race(asked(&mut stop, ()), rest).await;
        }
        slots.turn_took(started.elapsed());
        drop(slot);
    }

    async fn attempt(&self, due: Due, served: &Served, time: Duration) {
        let store = &self.store;
        let delivery = due.replay.delivery("".into());
        // One more than the schedule has, for an operator's retry.
        if due.replay.retries() > served.attempts().saturating_add(1) {
            let reason = "its attempts did not end: the process was killed, or did not answer";
            return self.give_up(&due.replay, served, reason).await;
        }
        let Some(request) = due.request else {
            let reason = "what was kept of the request cannot be read";
            return self.give_up(&due.replay, served, reason).await;
        };
        let sent = catch_panic(async {
            let (mut head, body) = request.into_parts();
            if let Some(prepare) = &self.prepare {
                prepare(&mut head);
            }
            (self.send)(Request::from_parts(head, body)).await
        });
        let status = match tokio::time::timeout(time, sent).await {
            Ok(Ok(status)) => status,
            Ok(Err(_)) | Err(_) => None,
        };
        if due.replay.was_reached() {
            // The layer has written down what became of it.
            return;
        }
        tracing::warn!(
            endpoint = delivery.endpoint(),
            delivery_id = delivery.id().as_str(),
            status = status.map(|status| status.as_u16()),
            "webhook recovery: no layer of this endpoint was reached, so this is no attempt; the router \
             that was given to Recovery has no such route, or a middleware has refused the request \
             (`keep_headers`, `prepare_request`); it is tried again in a minute"
        );
        if let Some(report) = served.dead_report() {
            report.metrics.recovery("unhandled");
        }
        let retries = due.replay.retries();
        if let Err(error) = store.give_back(&delivery, retries, UNHANDLED_WAIT).await {
            tracing::warn!(%error, "could not take back an attempt of webhook recovery");
        }
    }

    /// Makes a delivery dead that cannot be run.
    async fn give_up(&self, replay: &Replay, served: &Served, reason: &str) {
        let report = served.dead_report();
        let provider = report.as_ref().map(|report| report.provider.clone());
        let delivery = replay.delivery(provider.unwrap_or_default());
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        let failed = FailedAttempt::new(status, reason, Next::Dead);
        let (retries, schedule) = (replay.retries(), Schedule::new([]));
        let written = self
            .store
            .fail_kept(&failed, &delivery, retries, &schedule)
            .await;
        match (written, report) {
            (Ok(Some(_)), Some(report)) => report.send(&delivery, reason).await,
            (Ok(_), _) => {}
            // It is tried again when its time is up.
            (Err(error), _) => {
                tracing::warn!(%error, "could not write down that a webhook delivery is dead");
            }
        }
    }
}

/// How many attempts there may be at once, so that requests find connections in the pool.
fn share_of(pool: &PgPool) -> usize {
    let connections = usize::try_from(pool.options().get_max_connections()).unwrap_or(1);
    (connections / 2).max(1)
}

/// Resolves with `then` when recovery is asked to stop.
pub(super) async fn asked<T>(stop: &mut watch::Receiver<bool>, then: T) -> T {
    if stop.wait_for(|stop| *stop).await.is_err() {
        // The handle was dropped, so it will never be asked.
        std::future::pending().await
    }
    then
}

/// Resolves with the first of two futures.
pub(super) async fn race<T>(one: impl Future<Output = T>, other: impl Future<Output = T>) -> T {
    let (mut one, mut other) = (pin!(one), pin!(other));
    std::future::poll_fn(|cx| match one.as_mut().poll(cx) {
        Poll::Ready(first) => Poll::Ready(first),
        Poll::Pending => other.as_mut().poll(cx),
    })
    .await
}

impl fmt::Debug for Recovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recovery")
            .field("concurrency", &self.concurrency)
            .field("poll_interval", &self.poll_interval)
            .field("breaker", &self.breaker)
            .finish_non_exhaustive()
    }
}

/// The handle of a running [`Recovery`].
#[derive(Debug)]
pub struct RecoveryTask {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl RecoveryTask {
    /// Stops taking deliveries, and waits for the attempts that are running: at most as long as one
    /// may take, about a minute with the defaults of the layer. Deliveries that were taken and
    /// whose attempts have not begun are due as before. A rest ends at once.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        // It neither panics nor is aborted, but the runtime may be shutting down.
        let _ = self.task.await;
    }
}
