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

/// The limit of each of its own steps on the database.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Kubernetes kills 30 seconds after it has asked.
const STOP_LIMIT: Duration = Duration::from_secs(25);

/// The longest limit, far below what an `Instant` can hold.
const LONGEST_STOP: Duration = Duration::from_secs(24 * 60 * 60);

/// Spawns what was added to a recovery.
type BeginOther = Box<dyn FnOnce() -> Background + Send>;

/// Runs kept deliveries again until they are processed or dead.
///
/// It is a handle: layers that keep deliveries take it ([`Keep`](crate::Keep)), and
/// [`spawn`](Self::spawn) runs what they have kept, through the application's router. So the handler
/// has its path parameters, its state and its middlewares. The layer recognizes these requests by a
/// private mark and does not verify them again.
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
/// Spawn one in every process that serves the routes. Each takes only deliveries of the layers that
/// hold it, so several routers, or several databases, in one process have a handle each. A process whose
/// deliveries are run by another process says so: [`elsewhere`](Self::elsewhere).
///
/// An attempt of recovery and one of the provider queue for the same claim, so only one of them commits. An
/// attempt is counted before it runs, so a handler that kills its process uses up its attempts. An attempt
/// that did not reach the handler is not counted: Postgres was away, or no route handles the delivery. If a
/// process is killed, another one runs its deliveries within about ten seconds, whatever
/// [`handler_timeout`](crate::IdempotentWebhook::handler_timeout) is. Those that it had taken together with others lose no
/// attempt, and are taken one at a time then. A second attempt in a row that does not
/// end counts as a failure. The next one waits as the schedule says, and then nothing else
/// runs in the background beside it.
///
/// A process that takes deliveries writes every two seconds that it lives. For that it has one connection beside
/// those of the pool, with the pool's options and hooks.
#[derive(Clone)]
#[must_use = "recovery does nothing until it is spawned"]
pub struct Recovery {
    pub(super) shared: Arc<Shared>,
    /// What begins with recovery.
    others: Arc<Mutex<Vec<BeginOther>>>,
    poll_interval: Duration,
    pub(super) prepare: Option<Prepare>,
    on_change: Option<OnChange>,
    stop_limit: Duration,
    /// Paths at which layers should answer. `None` without a probe.
    places: Option<Vec<Place>>,
}

impl Recovery {
    /// Recovery of deliveries that are kept in the database of `pool`, which has to be that of the
    /// layers.
    pub fn new(pool: PgPool) -> Self {
        Self::of_process(pool, false)
    }

    /// The handle of a process that keeps deliveries and lets another process run them again.
    ///
    /// A layer keeps the same deliveries with it. If no other process recovers the endpoint, that is logged
    /// at WARN.
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

    /// Has this handle run something else as well, from [`spawn`](Self::spawn) to [`RecoveryTask::stop_with`].
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

    /// Checks at the start that the layer of an endpoint answers at this path of the router that is [spawned](Self::spawn). If it
    /// does not, that is logged at WARN, with what has answered instead: a handler whose layer was put before the
    /// routes, a login in front of it, no route.
    ///
    /// The paths of [`Reconcile`](crate::Reconcile) and of [`Subscriptions`](crate::subscriptions::Subscriptions) that were
    /// [added](Self::with) are known without it.
    ///
    /// The probe is an empty `POST` with the header `x-webhook-probe`, without a content type. The layer answers it itself.
    /// Where there is none, it reaches what is there: a handler of the application, or another service if a route is a
    /// proxy to one. Default: the paths that are known are probed.
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

    /// The handle of a layer. It has nothing of what begins with recovery: this has layers, which would hold themselves and
    /// their pool for ever.
    pub(super) fn of_layer(&self) -> Self {
        Self {
            others: Arc::default(),
            ..self.clone()
        }
    }

    /// The environment of this process, such as `production` or `staging`. **Read it from where copies of the application
    /// differ: a variable of the environment, a file. Never write it down in the code.** A copy of the database comes with a
    /// copy of the code, and whatever is a constant there is the same in both.
    ///
    /// ```no_run
    /// # use idempotent_webhook::Recovery;
    /// # fn recovery(pool: sqlx::PgPool) -> Result<Recovery, std::env::VarError> {
    /// let recovery = Recovery::new(pool).environment(std::env::var("APP_ENVIRONMENT")?);
    /// # Ok(recovery)
    /// # }
    /// ```
    ///
    /// The first process with an environment writes it into the database, which has it from then on, and so has each copy and
    /// each backup. In a database of one environment, a process of another, or of none:
    ///
    /// - runs nothing of what is kept. [`run_due`](Self::run_due) is an error.
    /// - asks no provider in the background, for [lists](crate::Reconcile) or
    ///   [subscriptions](crate::subscriptions::Subscriptions).
    /// - deletes nothing on a schedule ([`Retention`](crate::Retention)).
    /// - calls no hook, and reports nothing of the endpoints. It reports this one thing, within a minute: at ERROR in the log,
    ///   by the metric `idempotent_webhook_other_environment`, and in the dashboard.
    /// - handles requests, and answers 2xx only for what it has committed.
    ///   [`Keep::accepted`](crate::Keep::accepted) runs the handler before it answers, and
    ///   [`Keep::acknowledge`](crate::Keep::acknowledge) answers with the failure.
    ///
    /// [`recovery::adopt`](crate::recovery::adopt) gives the database another environment. What somebody orders is done all
    /// the same: [`Endpoint`](crate::Endpoint), [`prune`](crate::prune), [`rehearse`](Self::rehearse). The guide has a page on
    /// [backups and copies](crate::documentation::backups).
    ///
    /// The environment is that of this handle, of the layers that [keep](crate::IdempotentWebhook::keep) by it or
    /// [join](crate::IdempotentWebhook::join) it, and of what is [added](Self::with) to it. Set it before or after these. A
    /// task that is spawned by itself has that of its layer, and [`Retention`](crate::Retention) has none.
    ///
    /// Default: none. In a database without an environment, everything runs.
    ///
    /// # Panics
    ///
    /// If the name is empty, has more than 63 bytes, or anything but visible ASCII characters.
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

    /// How long [`RecoveryTask::stop_with`] may take. Set it below the time after which your platform kills a process: that is
    /// 30 seconds with Kubernetes and Heroku, and 10 with Docker, Cloud Run and Fly.io, unless they are told otherwise.
    /// At most a day. Default: 25 seconds.
    pub fn stop_limit(mut self, limit: Duration) -> Self {
        self.stop_limit = limit.min(LONGEST_STOP);
        self
    }

    /// How many deliveries this process handles in the background at the same time: those that are run
    /// again, and those of all layers that answer [before the handler runs](crate::Keep::accepted).
    ///
    /// At least 1, and at most half as many as the pool has connections, so that requests come first.
    /// Default: a quarter of them.
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

    /// The interval of the search for deliveries that other processes have kept, or have left behind when
    /// they were killed. Those of this process are known at once. Default: 5 seconds.
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.poll_interval = interval.max(Duration::from_millis(10));
        self
    }

    /// Adds to each request what the server would have added, such as `ConnectInfo`. A handler that
    /// extracts it fails otherwise, and uses up its attempts.
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

    /// Calls a function when a [problem](crate::recovery::Problem) of an endpoint begins, and when it is over: for a
    /// message to a chat, for example.
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
    ///     // It counts as told once this function returns.
    ///     tokio::runtime::Handle::current().block_on(send(text));
    /// })
    /// # }
    /// ```
    ///
    /// A change is told by one of the processes that have such a function, within a minute. It is a row in the table
    /// `problems` until the function has returned, so it is told at least once, whichever process is killed. What was told
    /// last of a problem is what is true: the function is not told of a begin after the end. A problem that is over before
    /// any process has called its function is not told; if that process is killed in the call, the end may be told alone. If
    /// no process has recovered an endpoint for ten minutes, it counts as removed: its problems are over, except for
    /// [`Unserved`](crate::recovery::Problem::Unserved).
    ///
    /// The function may block: it is called on a thread for that, within the runtime, one change after the other.
    /// [`RecoveryTask::stop`] waits for it. After 10 seconds, or if it panics, the change counts as told. What the function
    /// sends after that may come later than what is told next, so give its client a shorter timeout. The end of the process
    /// does not wait for a function that hangs.
    ///
    /// The log has the same, from the process that has found it: `webhook problem` at WARN, and `webhook problem over` at
    /// INFO, with the fields `endpoint` and `problem`.
    pub fn on_change(mut self, hook: impl Fn(&EndpointChange) + Send + Sync + 'static) -> Self {
        self.on_change = Some(Arc::new(hook));
        self
    }

    /// Starts the background task on the current tokio runtime. `service` handles the deliveries of all
    /// layers that hold this handle: the application's `Router`.
    ///
    /// It runs until [`RecoveryTask::stop`] or the end of the runtime. Dropping the handle does not
    /// stop it.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
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

    /// Makes all attempts that are due now, one after the other, and returns what happened. For tests,
    /// and for jobs that run from time to time. If other processes are there, it first waits until it knows which of
    /// them live: two to six seconds.
    ///
    /// At its end it looks for problems and calls the hooks, as a process does that has spawned a recovery.
    ///
    /// A delivery that fails and is due again at once is not run a second time. A paused endpoint is left
    /// alone, and so is one whose breaker is open.
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
    /// Any error of Postgres, and `sqlx::Error::Configuration` if the database is of another
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
                "the database is of another environment, so nothing of it is run".into(),
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

    /// The endpoint of a layer, for as long as the result is held.
    pub(crate) fn serve(&self, layer: ServedLayer) -> Arc<Served> {
        self.shared.endpoints.add(layer)
    }

    /// A stop waits for the layer.
    pub(crate) fn join(&self, layer: JoinedLayer) {
        self.shared.joined_layers.add(layer);
    }

    /// The number under which a delivery is taken now.
    pub(crate) async fn taker(&self) -> Result<Taker, DatabaseError> {
        self.shared.taker().await
    }

    /// Gives up the numbers of this process that no attempt holds. It takes new ones with the next delivery.
    pub(crate) async fn leave(&self) {
        self.shared.liveness.leave().await;
    }

    /// A slot for an attempt in the background, if one is free.
    pub(crate) fn try_slot(&self) -> Option<OwnedSemaphorePermit> {
        self.shared.slots.clone().try_acquire_owned().ok()
    }

    /// A delivery waits for an attempt of recovery.
    pub(crate) fn notify(&self) {
        self.shared.news.notify_waiters();
    }

    /// A delivery has been kept. After the first one, it is checked that a process recovers the endpoint.
    pub(crate) fn note_kept(&self, endpoint: &Arc<str>) {
        let has_kept = &self.shared.has_kept;
        if !has_kept.load(Ordering::Relaxed) && !has_kept.swap(true, Ordering::Relaxed) {
            let shared = Arc::downgrade(&self.shared);
            let warn = process_watch::warn_if_absent(shared, endpoint.clone());
            spawn_once("check of recovery", warn);
        }
    }
}

/// A share of the pool's connections, at least one.
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

    /// As `Reconcile` and `Subscriptions` have one.
    struct HasLayer(IdempotentWebhook);

    impl Begin for HasLayer {
        fn begin(self, _environment: &Environment) -> Background {
            drop(self.0);
            Background::spawn("has a layer", |_| async {})
        }
    }

    /// A test has many: each would leave its pool, and its connection for heartbeats.
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
