//! What happens to a delivery that fails?
//!
//! It is rolled back, and the provider hears of it. Whether it comes again is up to the provider: GitHub never
//! retries, and Shopify, Slack and others disable a webhook that fails. A layer with
//! [`keep`](crate::IdempotentWebhook::keep) therefore stores deliveries with their requests in Postgres, and
//! [`Recovery`] runs them again through the application's router, until they are processed or dead.
//!
//! ```
//! use axum::{Router, routing::post};
//! use idempotent_webhook::{DedupeTx, IdempotentWebhook, Keep, Recovery, Secret, presets};
//! use sqlx::PgPool;
//!
//! async fn push(_: DedupeTx) {}
//!
//! fn app(pool: PgPool, secret: Secret) -> Router {
//!     let recovery = Recovery::new(pool.clone());
//!     let github = IdempotentWebhook::new(pool, "deployments", presets::github(secret))
//!         .keep(Keep::failed(&recovery));
//!     let app = Router::new().route("/webhooks/github", post(push).layer(github));
//!     // In each process that serves the routes. It returns a handle with `stop`.
//!     recovery.spawn(app.clone());
//!     app
//! }
//! ```
//!
//! Give `spawn` the finished router: its clone lacks what is added to `app` later, such as a prefix.
//!
//! Recovery and the provider cannot both commit a delivery: their attempts queue for the same claim. What never arrived
//! is not kept: [reconciliation](super::reconciliation) finds it.
//!
//! # Three ways to keep
//!
//! | | kept | kill -9 in the handler | the provider gets | over the quota |
//! |---|---|---|---|---|
//! | [`Keep::failed`] | what failed in the handler or at the commit, after the rollback | takes the delivery with it, unless the provider retries | the handler's answer | the failure is only logged |
//! | [`Keep::all`] | everything, committed before the handler runs | loses nothing | the handler's answer | it is handled without being kept |
//! | [`Keep::all`] and [`accept_first`] | everything | loses nothing | 200 before the handler runs | 503 |
//!
//! With [`Keep::failed`], a success costs nothing. With the others, each delivery costs one more transaction. With
//! [`accept_first`], deliveries that arrive at the same time share it.
//!
//! If Postgres cannot keep a delivery, the first way gives the handler's answer, and the other two answer 503 before
//! the handler runs. **With [`Keep::failed`], a 503 before the handler ran is not kept either**: no connection was
//! free, Postgres was away, or another attempt at the same delivery was still running. One that has waited for other
//! deliveries of [its object](crate::IdempotentWebhook::serialize_by) is kept. If the provider does not retry, that delivery is lost, and only
//! [reconciliation](super::reconciliation) finds it. No way to keep helps while Postgres is away: it is where
//! deliveries are kept.
//!
//! With [`acknowledge`](crate::Keep::acknowledge), a failure that is kept is answered with 200, so that the provider
//! does not hear of it. A failure that cannot be kept is answered as usual.
//!
//! [`accept_first`] is for handlers that are slower than the provider's deadline, such as Slack's 3 seconds. The
//! handler runs at once in the process that took the request, if one of its attempts
//! ([`Recovery::concurrency`]) is free, and otherwise as soon as one is, in any process. If the provider sends the
//! delivery again before it is processed, it is due at once, unless it is running.
//!
//! # What is kept of a request
//!
//! The method, the URI with its query, the body, and the headers with content type, content encoding, delivery id and
//! event type, and `traceparent` if it is one. [`Keep::headers`](crate::Keep::headers) adds others. No other header is kept, so no signature, cookie
//! or `Authorization`. A token in the query that authenticates the request is removed. A token that a provider puts
//! into the body or the path is kept with it.
//!
//! A body over 1 MiB ([`Keep::body_limit`](crate::Keep::body_limit)) is not kept. Its delivery is handled before the
//! answer, and if that fails, the failure is recorded without the request.
//!
//! # The schedule
//!
//! | attempt of recovery | after |
//! |---|---|
//! | 1st | 10 s after the first failure |
//! | 2nd, 3rd, 4th | 1 min, 5 min, 15 min |
//! | 5th, 6th, 7th | 1 h, 3 h, 6 h |
//! | 8th, 9th, 10th | 12 h, 24 h, 24 h |
//!
//! Each delay is varied by a fifth. After the last attempt, about three days later, the delivery is dead.
//! [`Keep::retry_delays`] sets another schedule. The provider's own retries run as well, and do not move it,
//! except with [`accept_first`].
//!
//! # The life of a kept delivery
//!
//! A kept delivery is a row of `idempotent_webhook.kept_deliveries`. It is `due`, `dead`, `recorded` (its
//! request is not kept, so only the provider can send it again) or `processed` (its request stays in the
//! [archive](#the-archive)). A due one is *taken* while an attempt at it is under way.
//!
//! | from | event | to |
//! |---|---|---|
//! | | a request of the provider is kept before its handler runs | due, taken |
//! | | an attempt of the provider failed | due, dead or recorded |
//! | | [reconciliation](super::reconciliation) finds that its request never came | due |
//! | due, dead, recorded, processed | the provider sends it again, and it is accepted first | due |
//! | due | its time has come | due, taken |
//! | due, taken | the process of the attempt is gone | due |
//! | any | an attempt claims the delivery, in a transaction that commits | none or processed |
//! | due, taken | the attempt failed | due or dead |
//! | due, taken | the attempt could not begin, or this process has no handler for its [type](crate::Events) | due |
//! | due, taken | no handler is for its type, an hour after its receipt | processed |
//! | due, dead, recorded | it was processed while it was kept | none or processed |
//! | due, dead, recorded | its handler discards it | none |
//! | due, dead | an operator retries it | due |
//! | due, dead, recorded | an operator discards it | none |
//! | processed | an operator has it processed again | due |
//! | dead, recorded, processed | its time is over | none |
//!
//! The transaction of the claim deletes or archives the row, whether the attempt is one of the provider or of
//! recovery. If the attempt fails, that is rolled back with everything else.
//!
//! A failure is kept after the attempts of other processes at the same delivery have ended. It waits for that at most
//! half of [`database_timeout`](crate::IdempotentWebhook::database_timeout). After that, or where the default
//! isolation is not `read committed`, the row can outlive another process's success. Such a row ends as a duplicate
//! when it is due, without a call of the handler. [`Retention`](crate::Retention) never deletes the claim before it.
//!
//! # What counts as an attempt
//!
//! An attempt is counted before it runs, by the clock of the database, so a handler that kills its process,
//! or Postgres, uses up its attempts. After the last one of the schedule ([`Keep::retry_delays`]) the
//! delivery is dead. A handler can choose another time, the end, or to discard the delivery:
//! [`HandlerError::retry_after`], [`dead`](crate::HandlerError::dead) and
//! [`discard`](crate::HandlerError::discard).
//!
//! An attempt counts if the handler was called, and if an extractor or a router inside the layer (404, 405) answered in
//! its place. A panic counts, and so does a timeout.
//!
//! These do not count, and the delivery is due again:
//!
//! - after 5 seconds: Postgres was away, or another attempt was in flight, before the handler was called;
//! - after a minute: no layer of the endpoint was reached. The router that was given to
//!   [`Recovery::spawn`] has no such route, or a middleware has refused the request. It is logged at WARN,
//!   and counted as `unhandled` in the metrics. The row has the time and the status of the answer (`unreached_at`,
//!   `unreached_status`), and the dashboard shows them with the path.
//!
//! **A delivery is kept with its path.** If a deploy changes the path of a route, what was kept before is sent to the
//! old one. Serve both, with a clone of the layer, until nothing is kept with the old path:
//!
//! ```no_run
//! # use axum::{Router, routing::post};
//! # use idempotent_webhook::{DedupeTx, IdempotentWebhook};
//! # async fn push(_: DedupeTx) {}
//! # fn app(github: IdempotentWebhook) -> Router {
//! Router::new()
//!     .route("/hooks/github", post(push).layer(github.clone()))
//!     .route("/webhooks/github", post(push).layer(github))
//! # }
//! ```
//!
//! The provider's own attempts do not use up the schedule. A result that cannot be written because Postgres is away is
//! tried again each second for a minute.
//!
//! # When a process dies
//!
//! A process lives or it does not. One that takes deliveries writes every two seconds that it lives, to
//! `idempotent_webhook.processes`, on a connection of its own beside the pool. What a process has taken is nobody
//! else's while it lives, however long a handler, a middleware or a queue for connections takes: there is no lease.
//! When it has been silent for six seconds, what it had taken is free, and any process that serves the endpoint
//! takes it. That is within about ten seconds of the death, whatever
//! [`handler_timeout`](crate::IdempotentWebhook::handler_timeout) is. A process that could not write for four
//! seconds itself waits for another six before it takes others for gone: Postgres may have been down.
//!
//! What a process that lives has lost is free, too, once the other attempts have ended that it began within the same
//! ten seconds: the task of an attempt was dropped, or Postgres' answer never came. Code that blocks all threads of
//! the runtime for six seconds makes a process look gone: use `spawn_blocking`.
//!
//! The attempt that did not end is counted, and the next one follows at once: another delivery may have
//! killed the process. If that one does not end either, recovery records a failure instead of a third attempt, and
//! the next one follows the schedule. Nothing else runs in the background of its process meanwhile, so that it does
//! not take others with it.
//!
//! A process that is frozen, or whose host is cut off, keeps its connection until Postgres notices. The claim therefore
//! sets `idle_in_transaction_session_timeout` for its transaction: to `handler_timeout`,
//! [`in_flight_timeout`](crate::IdempotentWebhook::in_flight_timeout) and eight times
//! [`database_timeout`](crate::IdempotentWebhook::database_timeout), 60 seconds with the defaults and a response
//! deadline of 10 seconds, or to the pool's own value if that is lower. Then Postgres ends the claim. A process that
//! wakes up later has no effect: its transaction is gone. Each take of a row has a number, and what an older take
//! writes has no effect.
//!
//! # Operators
//!
//! `Endpoint::new(pool, "deployments")` has the operations, in any process: [`kept`](crate::Endpoint::kept),
//! [`retry`](crate::Endpoint::retry), [`discard`](crate::Endpoint::discard), `retry_all` and `discard_all` with a
//! [`Filter`](crate::recovery::Filter), `reprocess`, `pause` and `resume`. The dashboard has buttons for them. If the
//! tenant is part of the key, add `.tenant("name")`.
//!
//! A dead delivery is logged at ERROR, counted in `idempotent_webhook_dead_total`, and passed to the
//! function of [`Keep::on_dead`](crate::Keep::on_dead).
//!
//! # Middlewares
//!
//! A middleware in the router sees a delivery that runs again with the headers that were kept, and without
//! `ConnectInfo`. [`Recovery::prepare_request`](crate::Recovery::prepare_request) can add what it needs. If a
//! middleware refuses the request before it reaches the layer, the attempt does not count: it is made again every
//! minute, and logged at WARN.
//!
//! # Breaker and pause
//!
//! After 10 failures of different deliveries of an endpoint in a row ([`Keep::breaker`]) the breaker opens:
//! every 30 seconds, one due delivery is tried, any one of them, since the oldest may be hopeless. The others
//! wait without using up attempts. The first success closes the breaker. It is the same for all processes.
//! Requests of the provider call the handler as before. Their successes close it as well, and with
//! [`Keep::all`] their failures count.
//!
//! [`Endpoint::pause`] holds recovery back until [`Endpoint::resume`], which also closes the breaker. What is
//! running goes on. Requests of the provider are handled as before, but with [`accept_first`] they are only
//! kept.
//!
//! # Bounds
//!
//! - **Attempts at once.** [`Recovery::concurrency`] is one number for all work in the background: what
//!   recovery runs, and what layers that accept first run. It is a quarter of the pool's connections by
//!   default, and at most half, so that requests find connections. A delivery that waits holds none. The
//!   endpoint with the fewest running attempts comes first. If a backlog does not shrink
//!   (`idempotent_webhook_oldest_due_seconds`), raise it.
//! - **Quota.** At most 100,000 deliveries and 1 GiB of bodies are kept of an endpoint ([`Keep::quota`]), dead
//!   and recorded ones included, processed ones not. It is counted every 5 seconds while deliveries are kept,
//!   so somewhat more may be kept, and every second while it is full. A delivery that is kept already needs
//!   no room.
//! - **Retention.** What is dead or recorded stays until somebody retries or discards it, or until
//!   [`Retention`](crate::Retention) deletes it by its age. Without `Retention`, it stays.
//!
//! # The archive
//!
//! With [`Keep::processed_for`], the request of a processed delivery stays for that time:
//! with [`Keep::all`] that of each delivery, with [`Keep::failed`] those that had failed.
//! [`Endpoint::reprocess`] runs one again, and [`Endpoint::reprocess_all`] all of a filter, such as those of
//! an event type that were processed since a deploy, or by one
//! [version](crate::recovery::Filter::processed_by) of the application:
//!
//! ```no_run
//! # use std::time::SystemTime;
//! # use idempotent_webhook::Endpoint;
//! # use idempotent_webhook::recovery::Filter;
//! # async fn main_(billing: Endpoint, tuesday: SystemTime) -> sqlx::Result<()> {
//! let wrong = Filter::new().event_type("invoice.paid").processed_from(tuesday);
//! let deliveries = billing.reprocess_all(&wrong).await?;
//! # Ok(())
//! # }
//! ```
//!
//! Each is forgotten and due in one transaction, so it runs once more and with the schedule of a new one. Its
//! effects happen again: undo them first, or have the handler find them
//! ([`Delivery::is_reprocessed`](crate::Delivery::is_reprocessed)). Its
//! [idempotency keys](crate::Delivery::idempotency_key) are those of the first time. So a job that the handler inserts
//! with such a key, in a table where the key is unique, is there already: an insert without `on conflict do nothing`
//! fails at each attempt, until the delivery is dead. With it, the job of the first time stays as it is. Delete it
//! first, if it is to run again.
//!
//! # Several processes
//!
//! Spawn [`Recovery`] in each process that serves the routes. Each takes only deliveries of the layers that
//! hold its handle, so a rolling deploy may add and remove endpoints. Several routers, or several databases,
//! in one process have a handle each. A process that keeps deliveries and has no router to run them with
//! takes [`Recovery::elsewhere`].
//!
//! Deliveries that nobody runs are reported:
//!
//! - Five seconds after the first delivery was kept, a process that has not spawned its recovery logs a WARN.
//!   With [`Recovery::elsewhere`], it does so if no other process has had a heartbeat for the endpoint within
//!   two minutes.
//! - Five seconds after its start and every minute, recovery looks for due deliveries of endpoints that no process
//!   has recovered for two minutes, such as one that was renamed, and for those that a newer version of this crate
//!   has kept in another format. It sets the gauge `idempotent_webhook_unserved_deliveries`, and logs a WARN, which it
//!   repeats hourly.
//!
//! # Shutdown
//!
//! [`RecoveryTask::stop`](crate::recovery::RecoveryTask::stop) takes no more deliveries, and waits for the
//! attempts that are running. Deliveries that wait are left alone. Then wait for the layers
//! ([`drained`](crate::IdempotentWebhook::drained)). An attempt that is cut off is rolled back, and taken over
//! as that of a killed process is.
//!
//! # PgBouncer, isolation levels, roles
//!
//! Locks and settings last for a transaction, so all of this holds behind PgBouncer in transaction mode, with
//! any default isolation level, and for a role with `select, insert, update, delete` on the tables
//! ([`migrate`](crate::migrate)).
//!
//! # Tests
//!
//! [`Recovery::run_due`] makes the attempts that are due, one after the other, and returns their outcomes.
//!
//! [`accept_first`]: crate::Keep::accept_first
//! [`Endpoint::pause`]: crate::Endpoint::pause
//! [`Endpoint::reprocess`]: crate::Endpoint::reprocess
//! [`Endpoint::reprocess_all`]: crate::Endpoint::reprocess_all
//! [`Endpoint::resume`]: crate::Endpoint::resume
//! [`HandlerError::retry_after`]: crate::HandlerError::retry_after
//! [`Keep::all`]: crate::Keep::all
//! [`Keep::breaker`]: crate::Keep::breaker
//! [`Keep::failed`]: crate::Keep::failed
//! [`Keep::processed_for`]: crate::Keep::processed_for
//! [`Keep::quota`]: crate::Keep::quota
//! [`Keep::retry_delays`]: crate::Keep::retry_delays
//! [`Recovery`]: crate::Recovery
//! [`Recovery::concurrency`]: crate::Recovery::concurrency
//! [`Recovery::elsewhere`]: crate::Recovery::elsewhere
//! [`Recovery::poll_interval`]: crate::Recovery::poll_interval
//! [`Recovery::run_due`]: crate::Recovery::run_due
//! [`Recovery::spawn`]: crate::Recovery::spawn
