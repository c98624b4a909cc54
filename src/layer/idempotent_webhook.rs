//! The layer, with a builder for its settings.

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

/// The longest version string of an application, in bytes.
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
/// Put it on the route itself, closest to the handler, as above. Middleware between the layer and the handler sees a
/// response that is not committed yet. Middleware outside the layer must not change the body: the signature would no
/// longer match.
///
/// Do not put it around a whole router with `Router::layer`. There, it would also treat requests to unknown paths as
/// deliveries, and it **covers only the routes that were added before it**: in
/// `Router::new().layer(webhook).route("/", post(push))`, the handler answers unsigned requests. If all routes of a
/// router are one endpoint, use `Router::route_layer`, which panics if no route was added before it.
///
/// The layer covers all methods of the method router that it is put on. It answers every method that the [provider does
/// not use](Provider::methods) with 405. Most providers use only POST. Add handlers of other methods after the layer:
/// `post(push).layer(webhook).get(page)`.
///
/// If an earlier layer in a `tower::ServiceBuilder` changes the type of the body, convert the body before this layer:
/// `.map_request(|request: Request<_>| request.map(Body::new))`.
///
/// Clones share the pool, the connection limit, and what the layer knows about deliveries in flight and kept
/// deliveries. Two layers that are not clones of each other need different endpoints. A WARN is logged if they have the
/// same endpoint.
#[derive(Clone)]
#[must_use = "a layer does nothing until it is put on a route"]
pub struct IdempotentWebhook(Settings);

impl IdempotentWebhook {
    pub(crate) fn settings(&self) -> &Settings {
        &self.0
    }

    /// A layer that claims the deliveries of `provider` under the name `endpoint`.
    ///
    /// The endpoint is the namespace of delivery ids. Give each route its own name, and keep the name for as long as
    /// the route exists. Two routes with the same name mistake each other's deliveries for duplicates. If you change
    /// the name, the layer does not recognize duplicates of deliveries that were processed under the former name.
    ///
    /// The tables must exist: call [`migrate`](crate::migrate) first.
    ///
    /// The layer takes an idle connection from the pool without the pool's ping. If the connection is lost, the layer's
    /// own `BEGIN` detects that, and the layer takes another one. This also skips the pool's hook
    /// [`before_acquire`](sqlx::pool::PoolOptions::before_acquire). **If your hook sets a role or a tenant, or resets
    /// the connection, the pool needs [`test_before_acquire(false)`](sqlx::pool::PoolOptions::test_before_acquire)**:
    /// with this setting, the hook runs before each claim. If you want a ping, the hook can send it. The hooks
    /// `after_connect` and `after_release` always run.
    ///
    /// # Panics
    ///
    /// If the endpoint is blank, longer than 255 bytes, or contains control characters. If the provider's signature
    /// scheme cannot use one of its secrets; [`Provider::check_secrets`] checks that without a panic. If the provider
    /// signs the URL that it calls, and [`Provider::public_url`] is not set.
    #[track_caller]
    pub fn new(pool: PgPool, endpoint: impl Into<Arc<str>>, provider: Provider) -> Self {
        Self(Settings::new(pool, endpoint.into(), provider))
    }

    /// Ignores events of all other types.
    ///
    /// The layer answers them with the success that the provider expects and the outcome `ignored`. It does not touch
    /// Postgres, and does not keep the events. With `Events`, you can ignore types and give each other type its own
    /// handler.
    ///
    /// ```no_run
    /// # use idempotent_webhook::{IdempotentWebhook, Provider};
    /// # fn layer(pool: sqlx::PgPool, github: Provider) -> IdempotentWebhook {
    /// IdempotentWebhook::new(pool, "deployments", github).only(["push", "release", "pull_request.opened"])
    /// # }
    /// ```
    ///
    /// A name is a type, or a group such as `invoice.*`. An event whose type cannot be read is not ignored. An ignored
    /// type that the endpoint never received before is [reported once](crate::documentation::operating#event-types).
    /// Ignored events are counted, but not stored. Once you add a type, its new events reach the handler. To get
    /// earlier events as well, call [`Reconcile::run_once`](crate::Reconcile::run_once), which fetches the events
    /// within its [`look_back`](crate::Reconcile::look_back), or ask the provider to send the events again.
    ///
    /// # Panics
    ///
    /// If the provider has no event type, the list is empty, a name is not valid or is listed twice, or the layer
    /// already has a list.
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

    /// Lets the handler claim the delivery itself, with [`LateClaim`](crate::LateClaim).
    ///
    /// Before its claim, the handler holds no connection, for example while it calls the provider's API.
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
    /// Before the handler runs, the layer looks up whether the delivery was already processed, so a duplicate of a
    /// processed delivery does not reach the handler. Duplicates in this process wait for the delivery in flight.
    /// Another process may run the handler for the same delivery at the same time, up to
    /// [`LateClaim::begin`](crate::LateClaim::begin). That call succeeds in only one of the processes.
    ///
    /// A handler of this route that takes [`DedupeTx`](crate::DedupeTx) is not called: the sender gets a 500, and the
    /// log gives the reason.
    ///
    /// Default: off.
    pub fn late_claim(mut self) -> Self {
        self.0.claims_late = true;
        self
    }

    /// Runs deliveries of one object one at a time, across all processes.
    ///
    /// `source` says where a request contains the object:
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
    /// A delivery waits while another delivery of its object is between its claim and its commit, for up to
    /// [`in_flight_timeout`](Self::in_flight_timeout). If the wait takes longer, the sender gets a 503, or a 200 if the
    /// delivery was already processed. With [`Keep::failed`](crate::Keep::failed), a delivery that has waited too long
    /// is kept as a failed one; with [`Keep::all`](crate::Keep::all), it is due again in 5 seconds. Without a `Keep`,
    /// it is lost if the provider does not retry, as with GitHub. In each process, all waiting deliveries of one object
    /// together hold one connection. The setting costs one more round trip for each delivery, and two more if the
    /// delivery has waited.
    ///
    /// **It does not order deliveries.** The next delivery is chosen at random from the waiting deliveries, and a
    /// failed delivery is retried after later deliveries. Use [`DedupeTx::advance`](crate::DedupeTx::advance) to skip
    /// stale deliveries. With [`late_claim`](Self::late_claim), handlers in several processes run at the same time up
    /// to [`LateClaim::begin`](crate::LateClaim::begin).
    ///
    /// A delivery that does not contain the value does not wait. A value cannot be read if it is longer than 255 bytes,
    /// or is neither a string nor an integer. All deliveries with an unreadable value run one at a time, as if they
    /// were about one object. Deliveries of two endpoints never wait for each other, and neither do deliveries of two
    /// tenants with [`separate_ids`](crate::TenantSecrets::separate_ids). A handler sees everything that was committed
    /// while it waited, at any isolation level. If the value is in a header, that header is kept with the request.
    ///
    /// Default: off.
    ///
    /// # Panics
    ///
    /// If the source is part of the signature, or a [receipt](Source::receipt).
    #[track_caller]
    pub fn serialize_by(mut self, source: Source) -> Self {
        source.assert_is_in_requests();
        self.0.serialized_by = Some(source);
        self
    }

    /// How long the whole body may take to arrive. A slower body is answered with 408, or with the provider's
    /// [`failure_status`](Provider::failure_status).
    ///
    /// Default: 10 seconds.
    pub fn body_timeout(mut self, timeout: Duration) -> Self {
        self.0.verification.body_timeout = timeout;
        self
    }

    /// How long the handler may run. After that, it is dropped, its transaction is rolled back, and the
    /// sender gets a 503.
    ///
    /// The handler continues when the sender hangs up, so this may be longer than the provider's deadline. A statement
    /// that Postgres is still executing when the time is over is cancelled soon after, which frees its locks: see
    /// [the guide](crate::documentation::database#what-postgres-does-after-a-timeout).
    ///
    /// Default: 30 seconds.
    pub fn handler_timeout(mut self, timeout: Duration) -> Self {
        self.0.handler_timeout = timeout;
        self
    }

    /// How long a duplicate waits for the delivery in flight, counted from the duplicate's arrival. After that, the
    /// sender gets a 503 with `Retry-After`.
    ///
    /// Keep this timeout below the provider's own deadline. It limits the total wait, even if several attempts fail
    /// during the wait. If these attempts run in another process, the duplicate waits for a transaction-level advisory
    /// lock, limited by Postgres' `lock_timeout`. Before the handler's statements, the layer restores `lock_timeout` to
    /// the value of the pool's connections. The process reads this value once an hour.
    ///
    /// Default: three fifths of the provider's
    /// [`response_deadline`](Provider::response_deadline). At most a day.
    pub fn in_flight_timeout(mut self, timeout: Duration) -> Self {
        self.0.in_flight_timeout = timeout.min(MAX_TIMEOUT);
        self
    }

    /// How long the layer waits for Postgres in each of its own steps.
    ///
    /// The steps are: to get a connection and begin a transaction, to claim (in addition to the wait for a delivery in
    /// flight), to commit, and to roll back. If a step takes longer, the sender gets a 503. The timeout also limits the
    /// lookup of a tenant's secrets. If another session has locked a row, the layer's statement waits for at most half
    /// of this timeout. So no session of the layer goes on waiting for a row while it holds a claim.
    ///
    /// Default: 3 seconds, at most a day. The pool's own `acquire_timeout` applies as well.
    pub fn database_timeout(mut self, timeout: Duration) -> Self {
        self.0.database_timeout(timeout.min(MAX_TIMEOUT));
        self
    }

    /// How many connections of the pool deliveries may hold at the same time, at least 1. Further deliveries wait for
    /// up to [`database_timeout`](Self::database_timeout).
    ///
    /// The remaining connections are for handlers that take another connection from the pool in addition to their
    /// [`DedupeTx`](crate::DedupeTx), for example to read something. If no connection remained, each such handler would
    /// wait for another handler to finish, until one of them gives up.
    ///
    /// The limit applies to this layer together with its clones. Layers of several endpoints on one pool can together
    /// hold the whole pool. To prevent this, let these layers [share](Self::share_connections) a limit, or limit each
    /// layer to a part of the pool.
    ///
    /// Default: the size of the pool minus a fifth of it, so that at least one connection remains.
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.0.store.limit_connections(connections);
        self
    }

    /// Counts the connections of this layer and of `other` against one limit.
    ///
    /// The shared limit is the limit of `other`. Use it for several endpoints on one pool.
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
    /// Both layers must use the same pool. If you call [`max_connections`](Self::max_connections) on one of the layers
    /// later, the two layers no longer share a limit.
    ///
    /// Default: each layer has its own limit.
    pub fn share_connections(mut self, other: &Self) -> Self {
        self.0.share_connections(&other.0);
        self
    }

    /// Treats a delivery as a duplicate if its event type and body were already processed under another id.
    ///
    /// This is for providers that do not sign the delivery id ([`Provider::signs_delivery_id`]): a captured request can
    /// be replayed under a fresh id. The guard claims the SHA-256 of event type and body in the same transaction as the
    /// id, with one more round trip, and logs a replay at WARN as suspicious. Two kinds of replay still reach the
    /// handler:
    ///
    /// - A replay under another event type, if the type is not signed either, as with GitHub.
    /// - A replay whose body has the same form fields but other bytes, if the signature covers only the fields of an
    ///   HTML form, as with Twilio, Mandrill and Braintree
    ///   ([`signs_body_bytes`](crate::provider::signature::SignatureScheme::signs_body_bytes)).
    ///
    /// **It drops a body that a provider sends twice on purpose.** If two events have identical bodies, the guard takes
    /// the second one for a replay, until [`prune`](crate::prune) deletes the record of the first. Examples are two
    /// pings, or a star that is given, withdrawn and given again. Use the guard if each body contains a time or a
    /// number that makes it unique.
    ///
    /// With [`keep`](Self::keep), if such a duplicate was kept, its row is deleted. If [`Reconcile`](crate::Reconcile)
    /// checks the endpoint, the duplicate is recorded as discarded. Without this record, reconciliation would report it
    /// as missing for as long as the provider lists it.
    ///
    /// Default: off.
    pub fn replay_guard(mut self) -> Self {
        self.0.guards_replays = true;
        self
    }

    /// Keeps deliveries with their requests, so that [`Recovery`](crate::Recovery) can run them again.
    ///
    /// [`Keep::failed`] keeps failed deliveries. [`Keep::all`] keeps all deliveries, before the handler runs.
    ///
    /// Until a failed delivery is processed, the view `idempotent_webhook.failing_deliveries` shows it with the number
    /// of attempts, the times of the first and the last attempt, the status and the reason. [`Keep::body_limit`]
    /// explains how to record these facts without the request.
    ///
    /// A handler gives the reason with [`HandlerError`](crate::HandlerError). If it gives none, the reason is the first
    /// 200 characters of the response's body, if the body is text in axum's `Body` or in `Full<Bytes>`. Reasons are cut
    /// at 1000 characters. A reason may quote a value of the request, as serde's errors do. The log gives the same
    /// reasons.
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

    /// Makes a layer that keeps nothing join this process's [`Recovery`].
    ///
    /// The [`Recovery`] writes the request counts of all layers that have joined it, and waits for these layers when it
    /// [stops](crate::recovery::RecoveryTask::stop_with). A layer that [keeps](Self::keep) deliveries has already
    /// joined.
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

    /// Declares the longest time that should pass between two requests of the provider.
    ///
    /// A longer silence is a sign that the provider has switched the webhook off, or that the provider's requests do
    /// not get through.
    ///
    /// No error shows such a silence. The metric `idempotent_webhook_expected_every_seconds` reports the declared time,
    /// and `idempotent_webhook_last_authentic_timestamp_seconds` the time of the last authentic request. An
    /// [alert](crate::documentation::operating#metrics-and-alerts) compares the two, and the dashboard shows the
    /// endpoint as `silent`.
    ///
    /// The time of the last request to any process is read from the table `activity` every 30 seconds. The layer writes
    /// this table unless that is [switched off](Self::without_activity). Call this method within a tokio runtime. For
    /// an endpoint that has never had an authentic request, the silence is counted from the start of the process.
    ///
    /// Use twice the longest time between two requests that you have seen, including nights and weekends.
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

    /// Switches off the counts by hour that the dashboard plots.
    ///
    /// The table `idempotent_webhook.activity` contains requests and attempts by outcome, and handler calls by
    /// duration. `idempotent_webhook.rejections` contains rejected requests by cause.
    ///
    /// A request only increases counts in memory. Every 5 seconds, new counts are written in one short transaction. If
    /// layers have [joined](Self::join) a spawned [`Recovery`], that recovery writes the counts of all these layers
    /// together. A process that is killed loses the counts of its last 5 seconds. A process that calls
    /// [`drained`](Self::drained) before its end loses none.
    ///
    /// With its first counts, and hourly after that, a process also writes the settings of the layer, without secrets,
    /// to `idempotent_webhook.endpoint_settings`. If the layer has a list of event types (from [`only`](Self::only) or
    /// `Events`), `idempotent_webhook.event_types` records when each type was received. Without this record, no type is
    /// reported as new, or as no longer received. [`Retention`](crate::Retention) deletes old rows.
    ///
    /// For each cause of rejection, the last reason is stored, up to 300 characters. It contains nothing that the
    /// sender of a forged request can choose.
    ///
    /// Default: the activity is counted.
    pub fn without_activity(mut self) -> Self {
        self.0.counts.activity = None;
        self
    }

    /// The version of the application, such as the version of its package or a commit.
    ///
    /// The dashboard shows counts by version, so that you see what a deploy has changed. If two versions run side by
    /// side, the newer version decides which [event types](crate::documentation::operating#event-types), which payload
    /// versions and which [subscription](crate::documentation::subscriptions) are expected.
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
    /// If the version is blank, longer than 64 bytes, or contains control characters.
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

    /// Allows handlers of this route that do not take [`DedupeTx`](crate::DedupeTx).
    ///
    /// Without this setting, the layer logs at WARN if a handler answers success and has not taken its `DedupeTx`. Such
    /// a handler writes nothing, or it writes on other connections. Writes on other connections are not part of the
    /// transaction: if the commit fails, or the process is killed before the commit, the next attempt makes these
    /// writes again. Use this setting for handlers that write nothing, or whose writes are themselves idempotent.
    ///
    /// Default: off.
    pub fn allow_unused_transaction(mut self) -> Self {
        self.0.allow_unused_transaction = true;
        self
    }

    /// Allows kept deliveries of this endpoint to be [rehearsed](crate::Recovery::rehearse).
    ///
    /// A rehearsal runs kept deliveries through the router of a new version of the application, and rolls back what
    /// they do.
    ///
    /// **You declare that a rollback undoes what the handler does in a rehearsal.** That is true if the handler writes
    /// only through [`DedupeTx`](crate::DedupeTx), and has no effects outside the database while
    /// [`Delivery::is_rehearsal`](crate::Delivery::is_rehearsal) is set. Work [after the
    /// commit](crate::DedupeTx::after_commit) is skipped automatically. With [`late_claim`](Self::late_claim), the part
    /// before [`begin`](crate::LateClaim::begin) runs, so it should only read.
    /// [Rehearsal](crate::documentation::rehearsal) explains how to find writes outside the transaction.
    ///
    /// A handler that commits with [another driver](crate::LateClaim::committed) cannot be rehearsed.
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

    /// Resolves when this layer and its clones have nothing left to do.
    ///
    /// By then, no delivery is in flight, all [work after commits](crate::DedupeTx::after_commit) is done, and the
    /// activity is written. If deliveries are kept, this process has also recorded its end in Postgres, so that no
    /// other process takes it for dead.
    ///
    /// A handler continues after its sender has hung up, so a server that has closed its last connection may still have
    /// work to finish. Let the process end only after this future has resolved. A sender that falls silent in the
    /// middle of its request holds up the server forever, so limit how long the server may take to stop ([a whole
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
    /// If nothing new arrives, this takes at most a little more than [`handler_timeout`](Self::handler_timeout), plus
    /// the same time for each piece of work that a handler has registered with
    /// [`after_commit`](crate::DedupeTx::after_commit). While Postgres does not answer, the layer keeps trying for
    /// another minute to write the result of an attempt at a kept delivery. Everything else takes at most 5 seconds
    /// plus twice [`database_timeout`](Self::database_timeout). A result that cannot be written in this time is logged
    /// at WARN. An attempt that is still running when the process ends is rolled back.
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
    /// The settings for a service. This also makes them known to recovery and the dashboard.
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
