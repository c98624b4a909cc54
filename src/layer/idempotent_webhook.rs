//! The layer, with its settings as a builder.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sqlx::PgPool;
use tower_layer::Layer;

use super::request::IdempotentWebhookService;
use super::settings::Settings;
use super::verification::MAX_TIMEOUT;
use crate::provider::delivery::check_text;
#[cfg(feature = "axum")]
use crate::provider::event_types::WantedEvents;
use crate::provider::{Provider, Source};
use crate::recovery::Keep;
use crate::recovery::task::Recovery;

/// The longest version of an application, in bytes.
const MAX_VERSION: usize = 64;

/// A tower [`Layer`] that processes each delivery of a webhook at most once.
///
/// It buffers and verifies the request, claims the delivery in Postgres, and calls the handler
/// with the transaction of the claim as [`DedupeTx`](crate::DedupeTx). If the handler answers 2xx,
/// its writes commit together with the claim before the response leaves. Otherwise they are
/// rolled back, so that the provider's retry can claim the delivery at once. A duplicate of a
/// processed delivery is answered with 200 and does not reach the handler.
///
/// ```no_run
/// use axum::{Router, http::StatusCode, routing::post};
/// use idempotent_webhook::{DedupeTx, HandlerError, IdempotentWebhook, Secret, presets};
///
/// # async fn main_(pool: sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
/// let github = presets::github(Secret::new(std::env::var("GITHUB_WEBHOOK_SECRET")?)?);
/// let app: Router = Router::new().route(
///     "/webhooks/github",
///     post(push).layer(IdempotentWebhook::new(pool, "deployments", github)),
/// );
///
/// async fn push(mut tx: DedupeTx) -> Result<StatusCode, HandlerError> {
///     sqlx::query("insert into deployments default values")
///         .execute(&mut *tx)
///         .await?;
///     Ok(StatusCode::NO_CONTENT)
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Where to put it
///
/// Put it on the route itself, closest to the handler, as above. A middleware between the layer
/// and the handler sees a response that is not committed yet. A middleware outside of the layer must not change the
/// body, or no signature matches.
///
/// Around a whole router (`Router::layer`), it would also take requests to unknown paths for
/// deliveries, and it **covers only the routes that were added before it**: in
/// `Router::new().layer(webhook).route("/", post(push))` the handler answers unsigned requests. Use
/// `Router::route_layer` there, which panics before the first route, and only if all routes are one endpoint.
///
/// It covers all methods of the method router that it is put on, and answers methods other than
/// the [provider's](Provider::methods), which is POST, with 405. Add handlers of other methods
/// after it: `post(push).layer(webhook).get(page)`.
///
/// In a `tower::ServiceBuilder`, layers that change the type of a body need a conversion before
/// this one: `.map_request(|request: Request<_>| request.map(Body::new))`.
///
/// A clone shares the pool, the connection limit, and the record of deliveries in flight and kept. Two layers that are
/// not clones of each other need endpoints of their own: two layers with one endpoint are logged at WARN.
#[derive(Clone)]
#[must_use = "a layer does nothing until it is put on a route"]
pub struct IdempotentWebhook(Settings);

impl IdempotentWebhook {
    pub(crate) fn settings(&self) -> &Settings {
        &self.0
    }

    /// A layer that claims the deliveries of `provider` under the name `endpoint`.
    ///
    /// The endpoint is the namespace of delivery ids. Give each route its own name, and keep it for as long
    /// as the route exists. Two routes with one name take each other's deliveries for duplicates. Deliveries
    /// that were processed under a former name are unknown.
    ///
    /// The tables must exist: call [`migrate`](crate::migrate) first.
    ///
    /// The layer takes an idle connection of the pool without the pool's ping: it detects a lost one with its
    /// `BEGIN`, and takes another. It then does not run the pool's
    /// [`before_acquire`](sqlx::pool::PoolOptions::before_acquire) either. **A pool whose hook sets a role or a tenant, or
    /// resets the connection, needs
    /// [`test_before_acquire(false)`](sqlx::pool::PoolOptions::test_before_acquire)**: with it, the hook runs
    /// before each claim, and pings if it wants to. The hooks `after_connect` and `after_release` always run.
    ///
    /// # Panics
    ///
    /// If the endpoint is blank, longer than 255 bytes, or has control characters. If the
    /// provider's signature scheme cannot use one of its secrets;
    /// [`Provider::check_secrets`] checks that without a panic. If the provider signs the URL that it calls, and
    /// [`Provider::public_url`] is not set.
    #[track_caller]
    pub fn new(pool: PgPool, endpoint: impl Into<Arc<str>>, provider: Provider) -> Self {
        Self(Settings::new(pool, endpoint.into(), provider))
    }

    /// Ignores events of other types: they are answered with the provider's success without touching Postgres, with the
    /// outcome `ignored`, and nothing of them is kept. `Events` does the same
    /// with a handler for each type.
    ///
    /// ```no_run
    /// # use idempotent_webhook::{IdempotentWebhook, Provider};
    /// # fn layer(pool: sqlx::PgPool, github: Provider) -> IdempotentWebhook {
    /// IdempotentWebhook::new(pool, "deployments", github).only(["push", "release", "pull_request.opened"])
    /// # }
    /// ```
    ///
    /// A name is a type, or a group such as `invoice.*`. An event whose type cannot be read is not ignored. An ignored
    /// type that the endpoint never had before is [reported once](crate::documentation::operating#event-types). Ignored
    /// events are counted, but not stored: events of a type that is added later come from then on.
    /// [`Reconcile::run_once`](crate::Reconcile::run_once) brings earlier ones, as far back as it looks, or the
    /// provider sends them on request.
    ///
    /// # Panics
    ///
    /// If the provider has no event type, the list is empty, a name is not valid or is there twice, or the layer has a
    /// list already.
    #[track_caller]
    pub fn only<T: Into<String>>(mut self, event_types: impl IntoIterator<Item = T>) -> Self {
        self.0.verification.only(event_types);
        self.tell_types();
        self
    }

    #[cfg(feature = "axum")]
    #[track_caller]
    pub(crate) fn with_events(mut self, wanted: WantedEvents) -> Self {
        self.0.verification.set_events(wanted);
        self.tell_types();
        self
    }

    fn tell_types(&self) {
        if cfg!(feature = "metrics") {
            self.0.activity.tell_types();
        }
    }

    /// The handler claims the delivery itself, by [`LateClaim`](crate::LateClaim): it holds no connection before, for
    /// example while it calls the provider's API.
    ///
    /// ```no_run
    /// use axum::{Router, http::StatusCode, routing::post};
    /// use idempotent_webhook::{HandlerError, IdempotentWebhook, LateClaim, Secret, presets};
    ///
    /// # async fn call_an_api() -> std::io::Result<String> { Ok(String::new()) }
    /// # fn main_(pool: sqlx::PgPool, secret: Secret) {
    /// let stripe = IdempotentWebhook::new(pool, "billing", presets::stripe(secret)).late_claim();
    /// let app: Router = Router::new().route("/webhooks/stripe", post(updated).layer(stripe));
    /// # }
    ///
    /// async fn updated(claim: LateClaim) -> Result<StatusCode, HandlerError> {
    ///     let status = call_an_api().await?;
    ///     let mut tx = claim.begin().await?;
    ///     sqlx::query("update subscriptions set status = $1")
    ///         .bind(status)
    ///         .execute(&mut *tx)
    ///         .await?;
    ///     Ok(StatusCode::OK)
    /// }
    /// ```
    ///
    /// A duplicate of a processed delivery does not reach the handler: the layer looks it up first. Duplicates in this
    /// process wait for the delivery in flight. Another process may run the handler at the same time, up to
    /// [`LateClaim::begin`](crate::LateClaim::begin), which succeeds for only one of them.
    ///
    /// A handler of this route that takes [`DedupeTx`](crate::DedupeTx) is not called: the sender gets a 500, and
    /// the log says so.
    ///
    /// Default: off.
    pub fn late_claim(mut self) -> Self {
        self.0.claims_late = true;
        self
    }

    /// Deliveries of one object run one at a time, over all processes: `source` finds the object in a request.
    ///
    /// ```no_run
    /// # use idempotent_webhook::{IdempotentWebhook, Source, provider::JsonPathError};
    /// # fn layer(stripe: IdempotentWebhook) -> Result<IdempotentWebhook, JsonPathError> {
    /// # Ok(
    /// stripe.serialize_by(Source::json("$.data.object.id".parse()?))
    /// # )
    /// # }
    /// ```
    ///
    /// A delivery waits until no other one of its object is between its claim and its commit, for up to
    /// [`in_flight_timeout`](Self::in_flight_timeout). Then the sender gets a 503, or a 200 if the delivery was processed
    /// before. With
    /// [`Keep::failed`](crate::Keep::failed) the delivery is kept as one that failed; with
    /// [`Keep::all`](crate::Keep::all) it is due again in 5 seconds. Without a `Keep` it is lost if the provider does
    /// not retry, as with GitHub. All deliveries of one object that wait in one process hold one connection together.
    /// The setting costs one more round trip, and two more after a wait.
    ///
    /// **It does not order them.** Which waiting delivery runs next is random, and a delivery that fails runs after
    /// later ones. Use [`DedupeTx::advance`](crate::DedupeTx::advance) to skip stale ones. With
    /// [`late_claim`](Self::late_claim), handlers of other processes run at the same time up to
    /// [`LateClaim::begin`](crate::LateClaim::begin).
    ///
    /// A delivery without the value runs at any time. A value that cannot be read counts as one object: it is longer
    /// than 255 bytes, or neither a string nor an integer. Two endpoints do not share objects, nor do two tenants with
    /// [`separate_ids`](crate::TenantSecrets::separate_ids). A handler sees what was committed
    /// while it waited, at any isolation level. If a header has the value, it is kept with the request.
    ///
    /// Default: off.
    ///
    /// # Panics
    ///
    /// If the source is a part of the signature, or a [receipt](Source::receipt).
    #[track_caller]
    pub fn serialize_by(mut self, source: Source) -> Self {
        source.assert_is_in_requests();
        self.0.serialized_by = Some(source);
        self
    }

    /// How long the whole body may take to arrive. A slower one is answered with 408, or with the provider's
    /// [`failure_status`](Provider::failure_status).
    ///
    /// Default: 10 seconds.
    pub fn body_timeout(mut self, timeout: Duration) -> Self {
        self.0.verification.body_timeout = timeout;
        self
    }

    /// How long the handler may run. Then it is dropped, its transaction is rolled back, and the
    /// sender gets a 503.
    ///
    /// The handler continues when the sender hangs up, so this may be longer than the provider's
    /// deadline. A statement that Postgres is executing at that moment keeps its locks until it
    /// ends: see `statement_timeout` in the documentation of Postgres.
    ///
    /// Default: 30 seconds.
    pub fn handler_timeout(mut self, timeout: Duration) -> Self {
        self.0.handler_timeout = timeout;
        self
    }

    /// How long after its arrival a duplicate waits for the delivery in flight. Then the sender
    /// gets a 503 with `Retry-After`.
    ///
    /// Keep it below the provider's own deadline. It bounds the wait as a whole, even if several
    /// attempts fail meanwhile. If they run in another process, the duplicate waits for an
    /// advisory lock of the transaction, with Postgres' `lock_timeout`. Before the handler's
    /// statements that setting is restored to the value on the pool's connections, which the
    /// process reads once an hour.
    ///
    /// Default: three fifths of the provider's
    /// [`response_deadline`](Provider::response_deadline). At most a day.
    pub fn in_flight_timeout(mut self, timeout: Duration) -> Self {
        self.0.in_flight_timeout = timeout.min(MAX_TIMEOUT);
        self
    }

    /// How long the layer waits for Postgres in each of its own steps: to get a connection and
    /// begin a transaction, to claim (beyond the wait for a delivery in flight), to commit, to roll
    /// back. Then the sender gets a 503. It also limits the lookup of a tenant's secrets.
    /// Half of it is the longest wait in Postgres for a row that another session has locked, so no session of the layer
    /// goes on waiting while it holds a claim.
    ///
    /// Default: 3 seconds, at most a day. The pool's own `acquire_timeout` applies as well.
    pub fn database_timeout(mut self, timeout: Duration) -> Self {
        self.0.database_timeout(timeout.min(MAX_TIMEOUT));
        self
    }

    /// How many connections of the pool deliveries hold at most, at least 1. Further deliveries
    /// wait for up to [`database_timeout`](Self::database_timeout).
    ///
    /// The other connections are for handlers that take one of the pool beside their
    /// [`DedupeTx`](crate::DedupeTx), to read something. If none were left, each handler would wait for
    /// another one to end, until one of them gives up.
    ///
    /// The limit is for this layer and its clones. Layers of several endpoints on one pool can together hold all of it,
    /// unless they [share](Self::share_connections) a limit, or each has a part of the pool.
    ///
    /// Default: the size of the pool less a fifth of it, and less at least one.
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.0.store.limit_connections(connections);
        self
    }

    /// Counts the connections of this layer and of `other` against one limit, the one of `other`: for several endpoints
    /// on one pool.
    ///
    /// ```no_run
    /// # use idempotent_webhook::{IdempotentWebhook, Secret, presets};
    /// # fn main_(pool: sqlx::PgPool, one: Secret, two: Secret) {
    /// let stripe = IdempotentWebhook::new(pool.clone(), "billing", presets::stripe(one));
    /// let github = IdempotentWebhook::new(pool, "deployments", presets::github(two))
    ///     .share_connections(&stripe);
    /// # }
    /// ```
    ///
    /// Both layers must have the same pool. A later [`max_connections`](Self::max_connections) of either
    /// ends it.
    ///
    /// Default: each layer has a limit of its own.
    pub fn share_connections(mut self, other: &Self) -> Self {
        self.0.share_connections(&other.0);
        self
    }

    /// Takes a delivery for a duplicate if one with the same event type and an identical body was
    /// processed under another id.
    ///
    /// This is for providers that do not sign the delivery id
    /// ([`Provider::signs_delivery_id`]): a captured request of them can be replayed
    /// under a fresh id. The guard claims the SHA-256 of event type and body in the same
    /// transaction as the id, with one more round trip, and logs a replay at WARN as suspicious.
    /// If the event type is not signed either, as with GitHub, a replay under another type still
    /// reaches the handler. So does a rewritten form, if the signature covers only its fields
    /// ([`signs_body_bytes`](crate::provider::signature::SignatureScheme::signs_body_bytes)): Twilio, Mandrill,
    /// Braintree.
    ///
    /// **It drops a body that a provider sends twice on purpose.** Two events with identical bodies, such as a ping, or
    /// a star that is given, withdrawn and given again, are one to the guard until [`prune`](crate::prune) deletes the
    /// first. Use it if each body has a time or a number that makes it unique.
    ///
    /// With [`keep`](Self::keep), a kept row of such a duplicate ends. If the endpoint is reconciled
    /// ([`Reconcile`](crate::Reconcile)), the duplicate is discarded, since the provider may list it.
    ///
    /// Default: off.
    pub fn replay_guard(mut self) -> Self {
        self.0.guards_replays = true;
        self
    }

    /// Keeps deliveries with their requests, so that [`Recovery`](crate::Recovery) runs them again: those
    /// that failed ([`Keep::failed`]), or all of them before the handler runs ([`Keep::all`]).
    ///
    /// A failed delivery is in the view `idempotent_webhook.failing_deliveries` until it is processed, with the number
    /// of attempts, the times of the first and the last, the status and the reason. [`Keep::body_limit`] says how to
    /// record only that. A handler gives the reason with [`HandlerError`](crate::HandlerError). Otherwise the reason is
    /// the first 200 characters of the response's body, if that is a text in axum's `Body` or in `Full<Bytes>`. Reasons
    /// are cut at 1000 characters. They may quote a value of the request, as the errors of serde do. The log has the
    /// same reasons.
    ///
    /// Default: nothing is kept.
    ///
    /// ```no_run
    /// use axum::{Router, http::StatusCode, routing::post};
    /// use idempotent_webhook::{DedupeTx, IdempotentWebhook, Keep, Recovery, Secret, presets};
    ///
    /// # async fn push(_: DedupeTx) {}
    /// # fn main_(pool: sqlx::PgPool, secret: Secret) {
    /// let recovery = Recovery::new(pool.clone());
    /// let github = IdempotentWebhook::new(pool, "deployments", presets::github(secret))
    ///     .keep(Keep::failed(&recovery));
    /// let app: Router = Router::new().route("/webhooks/github", post(push).layer(github));
    /// recovery.spawn(app.clone());
    /// # }
    /// ```
    pub fn keep(mut self, keep: Keep) -> Self {
        self.0.keep(keep);
        self
    }

    /// Makes a layer that keeps nothing join the handle of this process, which writes the counts of all its layers, and
    /// waits for them when it [stops](crate::recovery::RecoveryTask::stop_with). A layer that [keeps](Self::keep)
    /// deliveries has joined already.
    ///
    /// ```
    /// # use idempotent_webhook::{IdempotentWebhook, Provider, Recovery};
    /// # fn layer(pool: sqlx::PgPool, provider: Provider) -> IdempotentWebhook {
    /// let recovery = Recovery::new(pool.clone());
    /// IdempotentWebhook::new(pool, "billing", provider).join(&recovery)
    /// # }
    /// ```
    pub fn join(mut self, recovery: &Recovery) -> Self {
        self.0.join(recovery);
        self
    }

    /// The provider sends at least one request in this time: a longer silence is a sign that it has switched the webhook
    /// off, or that nothing gets through.
    ///
    /// No error shows that. The metric `idempotent_webhook_expected_every_seconds` has this time, and
    /// `idempotent_webhook_last_authentic_timestamp_seconds` the time of the last authentic request. An
    /// [alert](crate::documentation::operating#metrics-and-alerts) compares them, and the dashboard shows the endpoint as
    /// `silent`.
    ///
    /// The time of the last request of all processes is read from the table `activity` every 30 seconds. The table is written
    /// unless it is [switched off](Self::without_activity). Call this within a tokio runtime. An endpoint that has never had an
    /// authentic request counts from the start of the process.
    ///
    /// Take twice the longest time between two requests that you have seen, nights and weekends included.
    ///
    /// Default: none, and there is no alert.
    pub fn expect_every(mut self, time: Duration) -> Self {
        self.0.expected_every = Some(time);
        self.0.verification.metrics.expected_every(time);
        if cfg!(feature = "metrics") {
            self.0.activity.tell_last_authentic();
        }
        self
    }

    /// Does not count the activity by hour, which the plots of the dashboard show. The table
    /// `idempotent_webhook.activity` has requests and attempts by outcome, and handlers by the time that they
    /// took. `idempotent_webhook.rejections` has rejected requests by cause.
    ///
    /// A request only adds to a number in memory. Every 5 seconds the numbers are written, if there are any, in one short
    /// transaction: together for all layers that have [joined](Self::join) a spawned [`Recovery`], or for this layer
    /// alone. A process that is killed loses the numbers of its last 5 seconds;
    /// [`drained`](Self::drained) writes them. Beside its first numbers, and then hourly, a process writes
    /// the settings of the layer, without secrets, to `idempotent_webhook.endpoint_settings`. With a table of event types,
    /// `idempotent_webhook.event_types` has when each type came: without that, no type is new or has stopped.
    /// [`Retention`](crate::Retention) deletes old rows.
    ///
    /// For each cause of rejections, the last reason is stored, up to 300 characters. It contains nothing that the
    /// sender of a forged request can choose.
    ///
    /// Default: it is counted.
    pub fn without_activity(mut self) -> Self {
        self.0.counts.activity = None;
        self
    }

    /// The version of the application, such as the version of its package or a commit. The dashboard shows numbers by
    /// version, so you see what a deploy has changed. If two versions run side by side, the newer one decides which
    /// [event types](crate::documentation::operating#event-types), which versions of payloads and which
    /// [subscription](crate::documentation::subscriptions) are expected.
    ///
    /// ```no_run
    /// # use idempotent_webhook::{IdempotentWebhook, Secret, presets};
    /// # fn main_(pool: sqlx::PgPool, secret: Secret) {
    /// let github = IdempotentWebhook::new(pool, "deployments", presets::github(secret))
    ///     .version(env!("CARGO_PKG_VERSION"));
    /// # }
    /// ```
    ///
    /// Default: none.
    ///
    /// # Panics
    ///
    /// If the version is blank, longer than 64 bytes, or has control characters.
    #[expect(clippy::panic, reason = "documented, and only at start")]
    pub fn version(mut self, version: impl Into<Arc<str>>) -> Self {
        let version = version.into();
        if version.len() > MAX_VERSION {
            panic!("not a usable version: {version:?} is longer than {MAX_VERSION} bytes");
        }
        if let Err(fault) = check_text(&version) {
            panic!("not a usable version: {version:?} is {fault}");
        }
        self.0.version = version;
        self
    }

    /// Handlers of this route need not take [`DedupeTx`](crate::DedupeTx).
    ///
    /// Without this setting, a success whose handler has not taken it is logged at WARN. Such a
    /// handler writes nothing, or it writes on other connections. Those writes are not part of the
    /// transaction: they happen twice if the commit fails or the process is killed before it. Use
    /// this setting for handlers that write nothing, or whose writes are idempotent themselves.
    ///
    /// Default: off.
    pub fn allow_unused_transaction(mut self) -> Self {
        self.0.allow_unused_transaction = true;
        self
    }

    /// Kept deliveries of this endpoint may be [rehearsed](crate::Recovery::rehearse): run through the router of a new
    /// version, and rolled back.
    ///
    /// **You declare that a rollback undoes what the handler does in a rehearsal.** That is true if it writes only
    /// through [`DedupeTx`](crate::DedupeTx), and skips effects outside of the database if
    /// [`Delivery::is_rehearsal`](crate::Delivery::is_rehearsal) is set. Work
    /// [after the commit](crate::DedupeTx::after_commit) is left out by itself. With
    /// [`late_claim`](Self::late_claim), the part before [`begin`](crate::LateClaim::begin) runs: it should only read.
    /// [Rehearsal](crate::documentation::rehearsal) says how to find writes outside of the transaction.
    ///
    /// A handler that commits by [another driver](crate::LateClaim::committed) cannot be rehearsed.
    ///
    /// Default: off. A rehearsal of the endpoint is refused.
    pub fn rehearsable(mut self) -> Self {
        self.0.is_rehearsable = true;
        if let Some(keeper) = &self.0.keeper {
            keeper.served.set(self.0.served_settings(&keeper.settings));
        }
        self
    }

    /// The value of `Retry-After` in a 503, in whole seconds, at least 1.
    ///
    /// Default: 5 seconds.
    pub fn retry_after(mut self, time: Duration) -> Self {
        self.0.verification.retry_after = time;
        self
    }

    /// Resolves when no delivery is in flight in this layer or a clone of it, all work after
    /// commits is done, and the activity is written. If deliveries are kept, no other process takes this one for dead
    /// afterwards.
    ///
    /// Handlers outlive their senders, so a server that has closed its last connection may still
    /// have work to finish. Wait for it before the process ends. A sender that falls silent in the middle of its
    /// request holds up the server forever, so give the server a limit ([a whole
    /// `main`](crate::documentation::operating#shutdown)):
    ///
    /// ```no_run
    /// # use idempotent_webhook::IdempotentWebhook;
    /// # use std::time::Duration;
    /// # use tokio::time::timeout;
    /// # async fn main_(layer: IdempotentWebhook, app: axum::Router, pool: sqlx::PgPool)
    /// # -> std::io::Result<()> {
    /// # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    /// # async fn stopped() {}
    /// let server = axum::serve(listener, app).with_graceful_shutdown(stopped());
    /// let server = tokio::spawn(async { server.await });
    /// stopped().await;
    /// let _ = timeout(Duration::from_secs(10), server).await;
    /// layer.drained().await;
    /// pool.close().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// If nothing new arrives, it takes at most a little more than
    /// [`handler_timeout`](Self::handler_timeout), and as much again for each
    /// [`after_commit`](crate::DedupeTx::after_commit) of a handler. While Postgres does not answer, the layer keeps
    /// trying for another minute to write the result of an attempt at a kept delivery. The rest takes 5 seconds at
    /// most, and twice [`database_timeout`](Self::database_timeout). A result that cannot be written in this time is
    /// logged at WARN. An attempt that is running when the process ends is rolled back.
    pub fn drained(&self) -> impl Future<Output = ()> + Send + 'static {
        let (joined, keeper) = (self.0.joined(), self.0.keeper.clone());
        async move {
            joined.drained().await;
            if let Some(keeper) = keeper {
                keeper.settings.recovery.leave().await;
            }
        }
    }
}

impl fmt::Debug for IdempotentWebhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotentWebhook")
            .field("endpoint", &self.0.verification.endpoint)
            .field("provider", &self.0.verification.provider)
            .finish_non_exhaustive()
    }
}

impl IdempotentWebhook {
    /// The settings for a service. Recovery and the dashboard know them from now on.
    pub(crate) fn serve(&self) -> Arc<Settings> {
        if let Some(keeper) = &self.0.keeper {
            keeper.served.set(self.0.served_settings(&keeper.settings));
        }
        self.0.tell();
        Arc::new(self.0.clone())
    }
}

impl<S> Layer<S> for IdempotentWebhook {
    type Service = IdempotentWebhookService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        IdempotentWebhookService::new(self.serve(), inner)
    }
}
