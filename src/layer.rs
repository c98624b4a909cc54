//! The layer and its settings.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use sqlx::PgPool;
use tower_layer::Layer;

use crate::claim::{Content, Store};
use crate::crypto::sha256_of;
use crate::delivery::Delivery;
use crate::in_flight::InFlight;
use crate::meter::Meter;
use crate::provider::Provider;
use crate::recent::Recent;
use crate::service::IdempotentWebhookService;

/// The longest wait, far below what Postgres and the clock can hold.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What is done about the bodies of deliveries, beside verifying them.
#[derive(Clone, Copy)]
enum Bodies {
    Unread,
    Compared,
    Guarded,
}

/// A tower [`Layer`] that runs the handler at most once for each delivery of a webhook.
///
/// It buffers and verifies the request, claims the delivery in Postgres, and calls the
/// handler with the transaction of the claim as [`DedupeTx`](crate::DedupeTx). What the
/// handler does through it commits together with the claim if the handler answers 2xx,
/// before the response leaves; otherwise it is rolled back, and the provider's retry
/// finds the way clear. A duplicate of a processed delivery is answered with 200 and does
/// not reach the handler.
///
/// Put it on the webhook's own route, closest to the handler: a middleware between the
/// two sees a response whose transaction has not been committed yet, and one outside
/// must not change the body.
///
/// ```no_run
/// use axum::{Router, http::StatusCode, routing::post};
/// use idempotent_webhook::{DedupeTx, IdempotentWebhook, Provider, Secret};
///
/// # async fn main_(pool: sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
/// let github = Provider::github(Secret::new(std::env::var("GITHUB_WEBHOOK_SECRET")?)?);
/// let app: Router = Router::new().route(
///     "/webhooks/github",
///     post(push).layer(IdempotentWebhook::new(pool, "deployments", github)),
/// );
///
/// async fn push(mut tx: DedupeTx) -> Result<StatusCode, StatusCode> {
///     sqlx::query("insert into deployments default values")
///         .execute(&mut *tx)
///         .await
///         .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
///     Ok(StatusCode::NO_CONTENT)
/// }
/// # Ok(())
/// # }
/// ```
///
/// A clone shares the pool, the connection limit and the knowledge of what is in flight.
#[derive(Clone)]
#[must_use = "a layer does nothing until it is put on a route"]
pub struct IdempotentWebhook {
    pub(crate) endpoint: Arc<str>,
    pub(crate) provider: Provider,
    pub(crate) store: Store,
    pub(crate) in_flight: InFlight,
    pub(crate) recent: Option<Recent>,
    bodies: Bodies,
    pub(crate) records_failures: bool,
    pub(crate) allows_unused_transaction: bool,
    pub(crate) meter: Meter,
    pub(crate) body_time: Duration,
    pub(crate) handler_time: Duration,
    pub(crate) in_flight_wait: Duration,
    pub(crate) retry_after: Duration,
    also_commit_on: Option<Arc<dyn Fn(StatusCode) -> bool + Send + Sync>>,
}

impl IdempotentWebhook {
    /// A layer that claims the deliveries of `provider` under the name of `endpoint`.
    ///
    /// The endpoint is the namespace of delivery ids. Give every route its own name and
    /// keep it for as long as the route lives: two routes of one name take each other's
    /// deliveries for duplicates, and a new name forgets what was processed under the
    /// old one.
    ///
    /// The tables must be there: call [`migrate`](crate::migrate) first.
    ///
    /// The pool need not ping a connection before it lends it: the layer finds out a dead
    /// one with its `BEGIN`, and takes another. Unless others rely on the ping,
    /// [`test_before_acquire(false)`](sqlx::pool::PoolOptions::test_before_acquire) saves a
    /// round trip for each delivery.
    ///
    /// # Panics
    ///
    /// If the endpoint is blank, longer than 255 bytes, or has control characters.
    pub fn new(pool: PgPool, endpoint: impl Into<Arc<str>>, provider: Provider) -> Self {
        let endpoint = endpoint.into();
        assert!(
            !endpoint.trim().is_empty()
                && endpoint.len() <= 255
                && !endpoint.chars().any(char::is_control),
            "not a usable endpoint name: {endpoint:?}"
        );
        Self {
            store: Store::new(pool, Duration::from_secs(3)),
            in_flight: InFlight::default(),
            recent: None,
            bodies: Bodies::Unread,
            records_failures: false,
            allows_unused_transaction: false,
            meter: Meter::new(endpoint.clone(), provider.shared_name()),
            body_time: Duration::from_secs(10),
            handler_time: Duration::from_secs(30),
            in_flight_wait: provider.default_in_flight_wait().min(DAY),
            retry_after: Duration::from_secs(5),
            also_commit_on: None,
            endpoint,
            provider,
        }
    }

    /// The largest body that is accepted, in bytes; a larger one is a 413.
    ///
    /// Default: the provider's [`body_limit`](Provider::body_limit). Within it, axum's
    /// own limit does not apply.
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.provider = self.provider.body_limit(bytes);
        self
    }

    /// How long the whole body may take to arrive; a slower one is a 408.
    ///
    /// Default: 10 seconds.
    pub fn body_time(mut self, time: Duration) -> Self {
        self.body_time = time;
        self
    }

    /// How long the handler may run; then it is dropped, its transaction rolled back, and
    /// the sender gets a 503.
    ///
    /// The handler goes on when the sender hangs up, so this may be longer than the
    /// provider's deadline. A statement that Postgres is still at when the time is up
    /// holds its locks until it ends: see `statement_timeout` in Postgres' documentation.
    ///
    /// Default: 30 seconds.
    pub fn handler_time(mut self, time: Duration) -> Self {
        self.handler_time = time;
        self
    }

    /// For how long after its arrival a duplicate waits for the delivery that is in
    /// flight; then the sender gets a 503 with `Retry-After`.
    ///
    /// Keep it below the provider's own deadline. It bounds the wait as a whole, however many
    /// attempts fail meanwhile. Where they run in another process, the wait is one for an
    /// advisory lock of the transaction, with Postgres' `lock_timeout`. For the handler's
    /// statements that is put back to what it is on the pool's connections, as the process reads
    /// it once an hour.
    ///
    /// Default: three fifths of the provider's
    /// [`response_deadline`](Provider::response_deadline). At most a day.
    pub fn in_flight_wait(mut self, time: Duration) -> Self {
        self.in_flight_wait = time.min(DAY);
        self
    }

    /// How long the layer waits for Postgres at each step of its own: a connection with a
    /// transaction, the claim (beyond the wait for one in flight), the commit, the
    /// rollback. Then the sender gets a 503.
    ///
    /// Default: 3 seconds, at most a day. The pool's own `acquire_timeout` holds as well.
    pub fn database_time(mut self, time: Duration) -> Self {
        self.store.timeout = time.min(DAY);
        self
    }

    /// How many connections of the pool deliveries hold at most, at least 1. Deliveries
    /// beyond it wait for up to [`database_time`](Self::database_time).
    ///
    /// Set it below the size of the pool if handlers take further connections from the
    /// same pool, or they can wait for each other for ever.
    ///
    /// Default: as many as the pool has.
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.store.limit_connections(connections);
        self
    }

    /// Answers duplicates of what this process has lately committed without asking
    /// Postgres: of the last `capacity` deliveries, each for at most `time`.
    ///
    /// Only an id whose commit was confirmed to this very process is remembered. It takes
    /// about 100 bytes and the id, twice.
    ///
    /// Whoever deletes a row by hand, to have a delivery processed once more, has to wait
    /// until `time` is over or the processes have been restarted: until then its
    /// duplicates are answered from memory. [`forget`](crate::forget) reaches the memory of
    /// the process that calls it.
    ///
    /// Default: off.
    pub fn remember(mut self, capacity: usize, time: Duration) -> Self {
        self.recent = Some(Recent::new(self.endpoint.clone(), capacity, time));
        self
    }

    /// Warns the operator of a duplicate whose event type or body is not that of the first.
    ///
    /// It is a duplicate all the same: some providers render a body anew for each retry.
    /// The event says both SHA-256 digests, and never the body.
    ///
    /// This takes the SHA-256 of each body, keeps it with the delivery, and asks Postgres
    /// once more for each duplicate. Those that [`remember`](Self::remember) answers, or
    /// that were in flight in this process together with the first, are not compared.
    ///
    /// Default: off.
    pub fn compare_bodies(mut self) -> Self {
        if let Bodies::Unread = self.bodies {
            self.bodies = Bodies::Compared;
        }
        self
    }

    /// Takes a delivery for a duplicate if one with the same event type and the same body,
    /// to the byte, has been processed under another id.
    ///
    /// This is for providers that do not sign the delivery id
    /// ([`Provider::signs_delivery_id`]): whoever has captured one of their requests can
    /// send it again under a fresh id. The guard claims the SHA-256 of event type and body
    /// in the same transaction as the id, with one more round trip, and reports a replay to
    /// the operator as suspicious. Where the event type is not signed either, as with GitHub, a replay
    /// under another type still reaches the handler.
    ///
    /// **It drops what a provider sends twice on purpose.** Two events whose bodies are the
    /// same to the byte, such as a star given, withdrawn and given again, or a ping, are
    /// one to the guard until [`prune`](crate::prune) forgets the first. Use it where each
    /// body has a time or a number that sets it apart.
    ///
    /// It does what [`compare_bodies`](Self::compare_bodies) does as well.
    ///
    /// Default: off.
    pub fn replay_guard(mut self) -> Self {
        self.bodies = Bodies::Guarded;
        self
    }

    /// Keeps a record of deliveries whose attempts were rolled back: how often, when first
    /// and last, and how, in the table `idempotent_webhook.failures`. It is written in a
    /// transaction of its own after the rollback and before the response. It holds no body; the
    /// message of a panic is cut at 1000 characters.
    ///
    /// ```sql
    /// select * from idempotent_webhook.failing_deliveries order by last_failed_at desc
    /// ```
    ///
    /// tells which deliveries are failing, since when, and how often. A delivery is no longer
    /// among them as soon as it has been processed; its record goes with the next round of
    /// [`Retention`](crate::Retention) or [`prune`](crate::prune). What cannot be recorded,
    /// because Postgres is down or the process is killed, is only logged, if at all.
    ///
    /// Default: off. A success costs nothing more with it.
    pub fn record_failures(mut self) -> Self {
        self.records_failures = true;
        self
    }

    /// Handlers of this route need not take [`DedupeTx`](crate::DedupeTx).
    ///
    /// Without it, a success whose handler has not taken it is logged at WARN: its writes, if
    /// there are any, went by other connections. They are not part of the transaction, and happen
    /// twice if the commit fails or the process is killed before it. Say it for handlers that
    /// write nothing, or whose writes are idempotent by themselves.
    ///
    /// Default: off.
    pub fn allow_unused_transaction(mut self) -> Self {
        self.allows_unused_transaction = true;
        self
    }

    /// What `Retry-After` says in a 503, in whole seconds, at least 1.
    ///
    /// Default: 5 seconds.
    pub fn retry_after(mut self, time: Duration) -> Self {
        self.retry_after = time;
        self
    }

    /// Statuses that commit besides 2xx, which always do.
    ///
    /// For example, `|status| status == StatusCode::UNPROCESSABLE_ENTITY` keeps the record
    /// of an event that can never be processed, so that its retries are duplicates.
    ///
    /// Default: none.
    pub fn also_commit_on(
        mut self,
        commits: impl Fn(StatusCode) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.also_commit_on = Some(Arc::new(commits));
        self
    }

    /// Resolves when no delivery is in flight here, in this layer or a clone of it, and all
    /// work after a commit has been done.
    ///
    /// Handlers outlive their senders, so a server that has closed its last connection may
    /// still have work to finish. Wait for it before the process ends:
    ///
    /// ```no_run
    /// # use idempotent_webhook::IdempotentWebhook;
    /// # async fn main_(layer: IdempotentWebhook, app: axum::Router, pool: sqlx::PgPool)
    /// # -> std::io::Result<()> {
    /// # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    /// # async fn stopped() {}
    /// axum::serve(listener, app).with_graceful_shutdown(stopped()).await?;
    /// layer.drained().await;
    /// pool.close().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// It takes [`handler_time`](Self::handler_time) and a little more at most, and as much
    /// again for each [`after_commit`](crate::DedupeTx::after_commit) of a handler, if nothing
    /// new arrives. What has not finished when the process ends is rolled back.
    pub fn drained(&self) -> impl Future<Output = ()> + Send + 'static {
        let in_flight = self.in_flight.clone();
        async move { in_flight.drained().await }
    }

    /// What a delivery says, if that is of interest.
    pub(crate) fn content(&self, delivery: &Delivery, body: &[u8]) -> Option<Content> {
        let guarded = match self.bodies {
            Bodies::Unread => return None,
            Bodies::Compared => false,
            Bodies::Guarded => true,
        };
        let event_type = delivery.event_type().unwrap_or_default();
        Some(Content {
            digest: sha256_of([event_type.as_bytes(), body]),
            guarded,
        })
    }

    pub(crate) fn commits(&self, status: StatusCode) -> bool {
        status.is_success()
            || self
                .also_commit_on
                .as_ref()
                .is_some_and(|also| also(status))
    }
}

impl fmt::Debug for IdempotentWebhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotentWebhook")
            .field("endpoint", &self.endpoint)
            .field("provider", &self.provider)
            .finish_non_exhaustive()
    }
}

impl<S> Layer<S> for IdempotentWebhook {
    type Service = IdempotentWebhookService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        IdempotentWebhookService::new(Arc::new(self.clone()), inner)
    }
}
