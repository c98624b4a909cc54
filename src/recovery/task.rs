//! `Recovery`: the handle that layers take, its settings, and how it is spawned.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use http_body_util::Full;
use sqlx::PgPool;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tower_service::Service;

use super::background_task::{BackgroundTask, Place};
use super::joined_layers::{JoinedLayer, JoinedLayers};
use super::liveness::{Liveness, Taker};
use super::probe::probe;
use super::problems::{EndpointChange, OnChange};
use super::process_watch::{self, WatchedTask};
use super::reconciled_lists::ReconciledLists;
use super::router::{Prepare, Router};
use super::runner::{AttemptResult, Runner};
use super::served_endpoints::{Endpoints, Served, ServedLayer};
use super::shared::Shared;
use super::stopping::RecoveryTask;
use crate::tasks_and_errors::background::{Background, spawn_once};
use crate::transaction::{DatabaseError, Environment, Store};

/// The time limit of each database step that recovery itself makes.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Kubernetes kills a process 30 seconds after it has asked the process to stop.
const STOP_LIMIT: Duration = Duration::from_secs(25);

/// The longest stop limit, far below what an `Instant` can hold.
const LONGEST_STOP: Duration = Duration::from_secs(24 * 60 * 60);

/// Spawns a task that was added with [`Recovery::with`].
type BeginOther = Box<dyn FnOnce() -> Background + Send>;

/// Runs kept deliveries again until they are processed or dead.
///
/// A *kept* delivery is one whose request is stored in Postgres. A kept delivery becomes *dead* when it has no
/// further attempt, and then waits for an operator.
///
/// This type is a handle. Give it to the layers that keep deliveries ([`Keep`](crate::Keep)). After
/// [`spawn`](Self::spawn), the kept deliveries of these layers run through the application's router. So a handler gets
/// its path parameters, its state and its middleware. The layer recognizes the request of a kept delivery by a private
/// type in its extensions, and does not verify it again.
///
/// ```no_run
/// use axum::{Router, http::StatusCode, routing::post};
/// use idempotent_webhook::{DedupeTx, IdempotentWebhook, Keep, Recovery, Secret, presets};
///
/// # async fn push(_: DedupeTx) {}
/// # async fn stopped() {}
/// # async fn main_(pool: sqlx::PgPool, secret: Secret) -> std::io::Result<()> {
/// # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// let recovery = Recovery::new(pool.clone());
/// let github = IdempotentWebhook::new(pool, "deployments", presets::github(secret))
///     .keep(Keep::failed(&recovery));
/// let app: Router = Router::new().route("/webhooks/github", post(push).layer(github));
///
/// let recovery = recovery.spawn(app.clone());
/// let server = axum::serve(listener, app).with_graceful_shutdown(stopped());
/// let server = tokio::spawn(async { server.await });
/// stopped().await;
/// recovery.stop_with(server).await;
/// # Ok(())
/// # }
/// ```
///
/// The guide has [a whole `main`](crate::documentation::operating#shutdown).
///
/// Spawn a recovery in every process that serves the routes. Each handle *takes*, that is, marks as its own and runs,
/// only deliveries of the layers that hold it. If one process has several routers or several databases, each router and
/// each database needs a handle of its own. If another process should run the deliveries that this process keeps, use
/// [`elsewhere`](Self::elsewhere).
///
/// A recovery attempt and a retry by the provider queue for the same claim, so only one of them commits. An attempt is
/// counted before it runs, so a delivery whose handler kills the process uses up its attempts. An attempt that did not
/// reach the handler, because Postgres was unreachable or no route handles the delivery, is not counted.
///
/// If a process is killed, another process runs its deliveries within about ten seconds, regardless of
/// [`handler_timeout`](crate::IdempotentWebhook::handler_timeout). Deliveries that the killed process had taken in a
/// batch do not lose an attempt; from then on, they are taken one at a time. If two attempts in a row do not end, the
/// second counts as a failure. The next attempt waits as the schedule says. While that attempt runs, nothing else runs
/// in the background.
///
/// A process that takes deliveries writes a heartbeat every two seconds. For the heartbeats, it holds one connection
/// outside the pool. This connection has the pool's options and hooks.
#[derive(Clone)]
#[must_use = "recovery does nothing until it is spawned"]
pub struct Recovery {
    pub(super) shared: Arc<Shared>,
    /// Tasks that start together with recovery.
    others: Arc<Mutex<Vec<BeginOther>>>,
    poll_interval: Duration,
    pub(super) prepare: Option<Prepare>,
    on_change: Option<OnChange>,
    stop_limit: Duration,
    /// Paths at which layers should answer. `None` if the probe is switched off.
    places: Option<Vec<Place>>,
}

impl Recovery {
    /// Creates a handle for the deliveries that are kept in the database of `pool`. It must be the database that
    /// the layers use.
    pub fn new(pool: PgPool) -> Self {
        Self::of_process(pool, false)
    }

    /// The handle of a process that keeps deliveries and lets another process run them again.
    ///
    /// A layer with this handle keeps the same deliveries as a layer with any other handle. If no other process
    /// recovers the endpoint, that is logged at WARN.
    pub fn elsewhere(pool: PgPool) -> Self {
        Self::of_process(pool, true)
    }

    fn of_process(pool: PgPool, elsewhere: bool) -> Self {
        let concurrency = share_of(&pool, 4);
        Self {
            shared: Arc::new(Shared {
                liveness: Liveness::new(pool.clone()),
                store: Store::new(pool, TIMEOUT, Duration::ZERO),
                endpoints: Endpoints::default(),
                reconciled_lists: ReconciledLists::default(),
                joined_layers: JoinedLayers::default(),
                slots: Arc::new(Semaphore::new(concurrency)),
                concurrency: Mutex::new(concurrency),
                elsewhere,
                is_spawned: AtomicBool::new(false),
                has_kept: AtomicBool::new(false),
                news: Notify::new(),
            }),
            others: Arc::default(),
            poll_interval: Duration::from_secs(5),
            prepare: None,
            on_change: None,
            stop_limit: STOP_LIMIT,
            places: Some(Vec::new()),
        }
    }

    /// Runs another background task together with recovery, from [`spawn`](Self::spawn) to [`RecoveryTask::stop_with`].
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use idempotent_webhook::{Recovery, Retention};
    /// # fn recovery(pool: sqlx::PgPool) -> Recovery {
    /// let month = Duration::from_secs(30 * 24 * 60 * 60);
    /// Recovery::new(pool.clone()).with(Retention::new(pool, month))
    /// # }
    /// ```
    pub fn with(mut self, task: impl BackgroundTask) -> Self {
        if let (Some(places), Some(place)) = (&mut self.places, task.place()) {
            places.push(place);
        }
        let environment = self.environment_of().clone();
        self.others()
            .push(Box::new(move || task.begin(&environment)));
        self
    }

    /// Checks at startup that the layer of an endpoint answers at this path of the [spawned](Self::spawn) router.
    ///
    /// If it does not, that is logged at WARN, with a guess at what has answered in place of the layer: a handler whose
    /// layer was added before the routes, a login in front of the layer, or no route.
    ///
    /// The paths of each [`Reconcile`](crate::Reconcile) and [`Subscriptions`](crate::subscriptions::Subscriptions)
    /// that was [added](Self::with) are known without this call.
    ///
    /// The probe is an empty `POST` with the header `x-webhook-probe`, without a content type. The layer answers it
    /// itself. If there is no layer, the probe reaches whatever is at that path: a handler of the application, or
    /// another service if the route is a proxy. Default: all known paths are probed.
    ///
    /// ```
    /// # use idempotent_webhook::Recovery;
    /// # fn recovery(pool: sqlx::PgPool) -> Recovery {
    /// Recovery::new(pool).probe("billing", "/webhooks/stripe")
    /// # }
    /// ```
    pub fn probe(mut self, endpoint: impl Into<Arc<str>>, path: impl Into<String>) -> Self {
        if let Some(places) = &mut self.places {
            places.push(Place {
                endpoint: endpoint.into(),
                path: path.into(),
            });
        }
        self
    }

    /// Switches the [probe](Self::probe) off.
    pub fn without_probe(mut self) -> Self {
        self.places = None;
        self
    }

    /// The handle that a layer holds. It leaves out the tasks that start with recovery, because these tasks hold
    /// layers: a layer would keep itself and its pool alive forever.
    pub(super) fn of_layer(&self) -> Self {
        Self {
            others: Arc::default(),
            ..self.clone()
        }
    }

    /// Sets the environment of this process, such as `production` or `staging`.
    ///
    /// **Read the name from something that differs between copies of the application, such as an environment
    /// variable or a file. Never write it into the code.** A copy of the database comes with a copy of the code,
    /// and a constant in the code is the same in both.
    ///
    /// ```no_run
    /// # use idempotent_webhook::Recovery;
    /// # fn recovery(pool: sqlx::PgPool) -> Result<Recovery, std::env::VarError> {
    /// let recovery = Recovery::new(pool).environment(std::env::var("APP_ENVIRONMENT")?);
    /// # Ok(recovery)
    /// # }
    /// ```
    ///
    /// The first process with an environment writes the name of its environment into the database. From then on,
    /// the database belongs to this environment, and so does each copy and each backup of it. In a database that
    /// belongs to one environment, a process with another environment, or with none:
    ///
    /// - runs no kept deliveries. [`run_due`](Self::run_due) returns an error.
    /// - asks no provider in the background, for [lists](crate::Reconcile) or
    ///   [subscriptions](crate::subscriptions::Subscriptions).
    /// - deletes nothing on a schedule ([`Retention`](crate::Retention)).
    /// - calls no hook, and reports nothing about the endpoints. It reports only that the environment differs,
    ///   within a minute: at ERROR in the log, by the metric `idempotent_webhook_other_environment`, and in the
    ///   dashboard.
    /// - handles requests, and answers 2xx only for what it has committed.
    ///   [`Keep::accepted`](crate::Keep::accepted) runs the handler before it answers, and
    ///   [`Keep::acknowledge`](crate::Keep::acknowledge) answers with the failure.
    ///
    /// [`recovery::adopt`](crate::recovery::adopt) gives the database another environment. Explicit calls work in
    /// any environment: [`Endpoint`](crate::Endpoint), [`prune`](crate::prune), [`rehearse`](Self::rehearse). The
    /// guide has a page on [backups and copies](crate::documentation::backups).
    ///
    /// The environment applies to this handle, to the layers that [keep](crate::IdempotentWebhook::keep) deliveries
    /// with it or [join](crate::IdempotentWebhook::join) it, and to the tasks that are [added](Self::with) to it.
    /// You can set it before or after these calls. A task that is spawned on its own has the environment of its
    /// layer; a [`Retention`](crate::Retention) that is spawned on its own has none.
    ///
    /// Default: none. In a database that belongs to no environment, everything runs.
    ///
    /// # Panics
    ///
    /// If the name is empty, has more than 63 bytes, or contains anything but visible ASCII characters.
    #[track_caller]
    pub fn environment(self, name: impl Into<Arc<str>>) -> Self {
        self.environment_of().set(name.into());
        self
    }

    pub(crate) fn environment_of(&self) -> &Environment {
        self.shared.store.environment()
    }

    fn others(&self) -> MutexGuard<'_, Vec<BeginOther>> {
        // Nothing panics while it holds the lock.
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The longest time that [`RecoveryTask::stop_with`] may take.
    ///
    /// Set the limit below the time after which your platform kills a stopping process: by default, that time is 30
    /// seconds with Kubernetes and Heroku, and 10 seconds with Docker, Cloud Run and Fly.io. The limit is at most a
    /// day. Default: 25 seconds.
    pub fn stop_limit(mut self, limit: Duration) -> Self {
        self.stop_limit = limit.min(LONGEST_STOP);
        self
    }

    /// How many deliveries this process handles in the background at the same time.
    ///
    /// The limit covers recovery attempts, and the deliveries of all layers that answer [before the handler
    /// runs](crate::Keep::accepted). It is at least 1, and at most half of the pool's connections, so that requests
    /// come first. Default: a quarter of the pool's connections.
    pub fn concurrency(self, attempts: usize) -> Self {
        let shared = &self.shared;
        let wanted = attempts.clamp(1, share_of(shared.store.pool(), 2));
        // Nothing panics while it holds the lock.
        let mut concurrency = shared
            .concurrency
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        shared
            .slots
            .add_permits(wanted.saturating_sub(*concurrency));
        shared
            .slots
            .forget_permits(concurrency.saturating_sub(wanted));
        *concurrency = wanted;
        drop(concurrency);
        self
    }

    /// How often recovery looks for deliveries that other processes have kept, for deliveries whose process was killed,
    /// and for deliveries that an operator has retried.
    ///
    /// Deliveries that this process has kept are noticed at once. Default: 5 seconds.
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.poll_interval = interval.max(Duration::from_millis(10));
        self
    }

    /// Adds to each request what the server would have added, such as `ConnectInfo`. If the request lacks a value that
    /// the handler extracts, the handler fails, and its deliveries use up their attempts.
    ///
    /// ```
    /// use std::net::{Ipv4Addr, SocketAddr};
    ///
    /// use axum::extract::ConnectInfo;
    /// use idempotent_webhook::Recovery;
    ///
    /// # fn recovery(pool: sqlx::PgPool) -> Recovery {
    /// Recovery::new(pool).prepare_request(|head| {
    ///     let nobody = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    ///     head.extensions.insert(ConnectInfo(nobody));
    /// })
    /// # }
    /// ```
    pub fn prepare_request(mut self, prepare: impl Fn(&mut Parts) + Send + Sync + 'static) -> Self {
        self.prepare = Some(Arc::new(prepare));
        self
    }

    /// Calls a function when a [problem](crate::recovery::Problem) of an endpoint starts, and when it is over, for
    /// example to send a message to a chat.
    ///
    /// ```no_run
    /// # use idempotent_webhook::Recovery;
    /// # async fn send(_: String) {}
    /// # fn recovery(pool: sqlx::PgPool) -> Recovery {
    /// Recovery::new(pool).on_change(|change| {
    ///     let state = if change.is_over { "over" } else { "begun" };
    ///     // The event type, if the problem is about one.
    ///     let subject = change.subject.as_deref().unwrap_or_default();
    ///     let text = format!("{}: {} {subject}, {state}", change.endpoint, change.problem);
    ///     // The change counts as reported once this function returns.
    ///     tokio::runtime::Handle::current().block_on(send(text));
    /// })
    /// # }
    /// ```
    ///
    /// Each change is reported within a minute, by one of the processes that have such a function. The change is stored
    /// in the table `problems` until the function has returned, so it is reported at least once, even if a process is
    /// killed. The last report about a problem is always right: after the call for the end of a problem, there is no
    /// call for the start of that problem any more. A problem that is over before any process has called its function
    /// is not reported. If a process is killed while it reports the start of a problem, the function may be called only
    /// for the end. If no process has recovered an endpoint for ten minutes, the endpoint counts as removed: its
    /// problems are over, except for [`Unserved`](crate::recovery::Problem::Unserved).
    ///
    /// The function may block: it is called on a thread of its own, within the runtime, for one change after the
    /// other. [`RecoveryTask::stop`] waits for it. After 10 seconds, or if the function panics, the change counts
    /// as reported. A message that the function sends after these 10 seconds may arrive later than the next report,
    /// so give the client that sends it a shorter timeout. A function that hangs does not keep the process from
    /// ending.
    ///
    /// The process that finds a change also logs it: `webhook problem` at WARN, and `webhook problem over` at INFO,
    /// with the fields `endpoint` and `problem`.
    pub fn on_change(mut self, hook: impl Fn(&EndpointChange) + Send + Sync + 'static) -> Self {
        self.on_change = Some(Arc::new(hook));
        self
    }

    /// Starts the background task on the current tokio runtime. `service` is the application's `Router`: it handles
    /// the deliveries of all layers that hold this handle.
    ///
    /// The task runs until [`RecoveryTask::stop`] or the end of the runtime. Dropping the returned handle does not
    /// stop it.
    ///
    /// # Panics
    ///
    /// If called outside of a tokio runtime.
    pub fn spawn<S, R>(mut self, service: S) -> RecoveryTask
    where
        S: Service<Request<Full<Bytes>>, Response = Response<R>> + Clone + Send + 'static,
        S::Future: Send,
        S::Error: Send,
        R: Send,
    {
        self.shared.is_spawned.store(true, Ordering::Relaxed);
        let runner = Arc::new(self.runner(service));
        if let Some(places) = self.places.take().filter(|places| !places.is_empty()) {
            spawn_once("probe", probe(runner.router.clone(), places));
        }
        let others = std::mem::take(&mut *self.others());
        let (look, looked) = watch::channel(());
        let (watched, look) = (self.shared.clone(), Arc::new(look));
        let (told, on_change) = (self.shared.clone(), self.on_change);
        let runner = Background::spawn("recovery", move |stop| runner.clone().run(stop));
        let telling = Background::spawn("hooks", move |stop| {
            process_watch::tell(told.clone(), on_change.clone(), looked.clone(), stop)
        });
        let others: Vec<_> = others.into_iter().map(|begin| begin()).collect();
        let tasks = [&runner, &telling].into_iter().chain(&others);
        let tasks: Arc<[_]> = tasks.map(WatchedTask::of).collect();
        RecoveryTask {
            shared: self.shared,
            runner,
            watch: Background::spawn("watch", move |stop| {
                process_watch::watch(watched.clone(), tasks.clone(), look.clone(), stop)
            }),
            telling,
            others,
            limit: self.stop_limit,
        }
    }

    /// Makes all attempts that are due now, one after the other, and returns their results.
    ///
    /// This is for tests, and for jobs that run from time to time. If there are other processes, it first waits
    /// until it knows which of them are alive, which takes two to six seconds. At the end, it looks for problems
    /// and calls the hooks, as a process with a spawned recovery does.
    ///
    /// A delivery that fails and is due again at once is not run a second time. Deliveries of a paused endpoint are
    /// left alone, and so are deliveries of an endpoint whose breaker is open (after many failures in a row).
    ///
    /// ```no_run
    /// # use idempotent_webhook::{Outcome, Recovery};
    /// # async fn test(recovery: Recovery, app: axum::Router) -> sqlx::Result<()> {
    /// let attempts = recovery.run_due(&app).await?;
    /// assert_eq!(attempts.len(), 1);
    /// assert_eq!(attempts[0].outcome, Some(Outcome::Processed));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Any error of Postgres, and `sqlx::Error::Configuration` if the database belongs to another
    /// [environment](Self::environment).
    pub async fn run_due<S, R>(&self, service: &S) -> sqlx::Result<Vec<AttemptResult>>
    where
        S: Service<Request<Full<Bytes>>, Response = Response<R>> + Clone + Send + 'static,
        S::Future: Send,
        S::Error: Send,
        R: Send,
    {
        let is_home = self.shared.store.look_at_environment().await;
        if !is_home.map_err(DatabaseError::into_sqlx)? {
            return Err(sqlx::Error::Configuration(
                "the database belongs to another environment, so nothing in it is run".into(),
            ));
        }
        let results = self.runner(service.clone()).run_due().await?;
        process_watch::look_once(&self.shared, self.on_change.as_ref(), !results.is_empty()).await;
        Ok(results)
    }

    fn runner<S, R>(&self, service: S) -> Runner
    where
        S: Service<Request<Full<Bytes>>, Response = Response<R>> + Clone + Send + 'static,
        S::Future: Send,
        S::Error: Send,
        R: Send,
    {
        Runner {
            shared: self.shared.clone(),
            router: Router::new(service, self.prepare.clone()),
            poll_interval: self.poll_interval,
            attempts: Mutex::default(),
        }
    }

    /// Adds the endpoint of a layer, for as long as the result is held.
    pub(crate) fn serve(&self, layer: ServedLayer) -> Arc<Served> {
        self.shared.endpoints.add(layer)
    }

    /// Adds a layer. [`RecoveryTask::stop`] waits for its deliveries.
    pub(crate) fn join(&self, layer: JoinedLayer) {
        self.shared.joined_layers.add(layer);
    }

    /// The number under which a delivery is taken now (`liveness/mod.rs`).
    pub(crate) async fn taker(&self) -> Result<Taker, DatabaseError> {
        self.shared.taker().await
    }

    /// Gives up the numbers of this process that no attempt holds. The next delivery is taken under a new number.
    pub(crate) async fn leave(&self) {
        self.shared.liveness.leave().await;
    }

    /// A slot for an attempt in the background, if one is free.
    pub(crate) fn try_slot(&self) -> Option<OwnedSemaphorePermit> {
        self.shared.slots.clone().try_acquire_owned().ok()
    }

    /// Notifies recovery that a delivery waits for an attempt.
    pub(crate) fn notify(&self) {
        self.shared.news.notify_waiters();
    }

    /// Notes that a delivery has been kept. After the first one, it checks that a process recovers the endpoint.
    pub(crate) fn note_kept(&self, endpoint: &Arc<str>) {
        let has_kept = &self.shared.has_kept;
        if !has_kept.load(Ordering::Relaxed) && !has_kept.swap(true, Ordering::Relaxed) {
            let shared = Arc::downgrade(&self.shared);
            let warn = process_watch::warn_if_absent(shared, endpoint.clone());
            spawn_once("check of recovery", warn);
        }
    }
}

/// One of `parts` equal shares of the pool's connections, and at least one connection.
pub(super) fn share_of(pool: &PgPool, parts: u32) -> usize {
    let connections = pool.options().get_max_connections() / parts;
    usize::try_from(connections.max(1)).unwrap_or(1)
}

impl fmt::Debug for Recovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recovery")
            .field("endpoints", &self.shared.endpoints)
            .field("poll_interval", &self.poll_interval)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

    use super::super::background_task::Begin;
    use super::*;
    use crate::layer::idempotent_webhook::IdempotentWebhook;
    use crate::presets;
    use crate::provider::secret::Secret;
    use crate::recovery::keep_settings::Keep;

    /// A task that holds a layer, as `Reconcile` and `Subscriptions` do.
    struct HasLayer(IdempotentWebhook);

    impl Begin for HasLayer {
        fn begin(self, _environment: &Environment) -> Background {
            drop(self.0);
            Background::spawn("has a layer", |_| async {})
        }
    }

    /// A test run creates many applications. If they were not dropped, each would leave its pool and its connection for
    /// heartbeats open.
    #[tokio::test]
    async fn an_application_that_is_not_spawned_is_dropped()
    -> Result<(), Box<dyn std::error::Error>> {
        let pool = PgPoolOptions::new().connect_lazy_with(PgConnectOptions::new());
        let recovery = Recovery::new(pool.clone());
        let provider = presets::stripe(Secret::new("whsec_test")?);
        let layer = IdempotentWebhook::new(pool, "test", provider).keep(Keep::all(&recovery));
        let recovery = recovery.with(HasLayer(layer.clone()));
        let shared = Arc::downgrade(&recovery.shared);
        drop((layer, recovery));
        assert!(shared.upgrade().is_none());
        Ok(())
    }

    #[tokio::test]
    async fn a_share_of_a_pool_is_rounded_down_and_at_least_one() {
        for (connections, expected) in [(10, 5), (5, 2), (1, 1)] {
            let pool = PgPoolOptions::new()
                .max_connections(connections)
                .connect_lazy_with(PgConnectOptions::new());
            assert_eq!(share_of(&pool, 2), expected);
        }
    }
}
