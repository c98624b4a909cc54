//! How is it operated?
//!
//! # Did an event arrive?
//!
//! The dashboard answers that under *Look up*. In SQL:
//!
//! ```sql
//! with asked (endpoint, tenant, delivery_id) as (values ('billing', '', 'evt_1Qx'))
//! select 'processed' as state, received_at as at, null as reason
//! from idempotent_webhook.deliveries join asked using (endpoint, tenant, delivery_id)
//! union all
//! select state, coalesce(last_failed_at, first_received_at), reason
//! from idempotent_webhook.kept_deliveries join asked using (endpoint, tenant, delivery_id)
//! where state <> 'processed'
//! union all
//! select 'discarded', discarded_at, null
//! from idempotent_webhook.discarded join asked using (endpoint, tenant, delivery_id);
//! ```
//!
//! `tenant` is empty unless it is part of the key. `discarded` is also what an operator has forgotten. The states
//! `due`, `dead` and `recorded` are those of a [kept delivery](super::recovery#the-life-of-a-kept-delivery). Without a
//! row, one of these is true:
//!
//! - The event was never received.
//! - Its request was rejected.
//! - It is in flight.
//! - It failed, and its layer neither keeps nor records failures, or it got a 503 before its handler ran. The log has
//!   it.
//! - `replay_guard` took it for a duplicate of another id.
//! - It came to another endpoint, or under an earlier name of this one.
//! - Its row was deleted by [retention](#retention).
//!
//! Rejected requests have no trustworthy id, so they are only counted, with the last reason of each cause. The
//! causes are those of the [metric](crate#metrics):
//!
//! ```sql
//! select hour, cause, count, reason
//! from idempotent_webhook.rejections
//! where endpoint = 'billing' and hour > now() - interval '1 day'
//! order by hour, cause;
//! ```
//!
//! # What is failing?
//!
//! With [`record_failures`](crate::IdempotentWebhook::record_failures) or
//! [`keep`](crate::IdempotentWebhook::keep), a failed delivery is recorded until an attempt succeeds:
//!
//! ```sql
//! select delivery_id, state, attempts, last_failed_at, next_attempt_at, status, reason
//! from idempotent_webhook.failing_deliveries
//! where endpoint = 'billing'
//! order by last_failed_at desc;
//! ```
//!
//! - `due`: it runs again at `next_attempt_at`, and later while its endpoint is paused or its breaker is open.
//! - `dead`: it waits for an operator.
//! - `recorded`: its request is not kept, so only the provider can send it again.
//!
//! Deliveries that were kept first and have not failed are not in this view. [`Endpoint::kept`] has all that is kept.
//!
//! [`Endpoint`] has the operations: `kept`, `retry`, `retry_all`, `discard`, `discard_all`, `reprocess`,
//! `reprocess_all`, `pause`, `resume` and `forget`. It works in any process, such as a command of your own. The
//! module `dashboard` has buttons for them.
//!
//! # Run it again after a bug
//!
//! With an archive ([`Keep::processed_for`](crate::Keep::processed_for)), [`Endpoint::reprocess`] and
//! [`Endpoint::reprocess_all`] run processed deliveries again. Without one, [`Endpoint::forget`] forgets a delivery,
//! so that it is processed when the provider sends it again. In SQL, for a delivery that was processed:
//!
//! ```sql
//! delete from idempotent_webhook.deliveries
//! where endpoint = 'billing' and tenant = '' and delivery_id = 'evt_1Qx';
//! delete from idempotent_webhook.kept_deliveries
//! where endpoint = 'billing' and tenant = '' and delivery_id = 'evt_1Qx';
//! delete from idempotent_webhook.bodies
//! where endpoint = 'billing' and tenant = '' and delivery_id = 'evt_1Qx';
//! ```
//!
//! `Reconcile` does not run what `forget` has forgotten. It may run what was deleted in SQL.
//!
//! # Log
//!
//! Each request has one `tracing` span, `webhook`, with endpoint, provider, tenant, delivery id (once it is
//! authentic), event type and outcome. `RUST_LOG=info,idempotent_webhook=debug` shows everything.
//!
//! | level | what |
//! |---|---|
//! | DEBUG | a delivery before its handler runs; processed; accepted; duplicate; ignored |
//! | INFO | a handshake; a 503 for a delivery in flight; each delivery that reconciliation found; a kept one that has ended as ignored; what operators do |
//! | WARN | a rejected request, with the reason (of 405s only the first); a non-2xx response of the handler, with its reason; what reconciliation found, or could not read; a success without `DedupeTx`; an open breaker; deliveries that nobody runs |
//! | ERROR | a panic, a timeout, a refused commit, an ignored SQL error, a full quota, a Postgres that cannot be reached, a delivery that is dead |
//!
//! The log says what is wrong with a signature; the response does not. The DEBUG line before the handler is the trace
//! of a process that was killed in it. With `accept_first`, the run in the background has a span of its own. Secrets,
//! signatures and bodies are never logged. A reason may quote a value of a body, as serde's errors do. The dashboard
//! masks it for those who may not see payloads.
//!
//! # Traces
//!
//! A delivery that is recovered should be in the trace of its first attempt, or point back to it. The header
//! `traceparent` of W3C Trace Context is kept with a request. A later attempt has it as a header, and as the field
//! `traceparent` of its span `webhook`.
//!
//! Providers do not send this header, and a stranger's is not to be trusted. So a middleware in front of the layer writes
//! the context of its own span there. The crate `examples/traces` in the source does that with OpenTelemetry, and shows a
//! failure and its recovery as one trace.
//!
//! # Metrics and alerts
//!
//! The feature `metrics` reports through the crate `metrics` 0.24, for any exporter. For Prometheus:
//!
//! ```toml
//! idempotent-webhook = { version = "0.1", features = ["metrics"] }
//! metrics-exporter-prometheus = { version = "0.18", default-features = false }
//! ```
//!
//! ```
//! use axum::{Router, routing::get};
//! use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder};
//!
//! /// Call it before the layers are made, which start their counters at zero. Serve it on a port that only
//! /// Prometheus reaches.
//! fn metrics() -> Result<Router, BuildError> {
//!     // Without buckets it exports summaries, which cannot be summed up over processes.
//!     let seconds = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];
//!     let recorder = PrometheusBuilder::new()
//!         .set_buckets_for_metric(Matcher::Suffix("_seconds".into()), &seconds)?
//!         .install_recorder()?;
//!     Ok(Router::new().route("/metrics", get(async move || recorder.render())))
//! }
//! # assert!(metrics().is_ok());
//! ```
//!
//! The [front page](crate#metrics) lists all metrics. These rules are a file for Prometheus:
//!
//! ```yaml
#![doc = include_str!("prometheus_rules.yml")]
//! ```
//!
//! Leave out what you do not use: `WebhooksWithoutRecovery` needs a [`Recovery`](crate::Recovery), and
//! `WebhooksNeverCame` a [`Reconcile`](crate::Reconcile). `WebhooksFailing` also counts deliveries that a handler has
//! [discarded](crate::HandlerError::discard). `WebhooksAllFailing` and `WebhooksRejected` fire after five minutes,
//! before a provider switches the endpoint off; the comments say how to change that. `WebhooksRetrying` fires if at
//! least one delivery was failing at every moment of its `for`, an hour.
//!
//! `WebhooksSilent` is for a provider that has stopped sending, which no error tells of. It needs the longest usual time
//! between two requests, for each endpoint: [`expect_every`](crate::IdempotentWebhook::expect_every).
//!
//! Without Prometheus, [`Recovery::on_change`](crate::Recovery::on_change) calls a function when a problem of an endpoint
//! begins and when it is over, once over all processes, and [`Keep::on_dead`](crate::Keep::on_dead) for each delivery that
//! becomes dead. A log that raises alerts has both: `webhook problem`, `webhook problem over` and `webhook dead`.
//!
//! | problem | begins | is over |
//! |---|---|---|
//! | `failing` | a delivery has failed and waits | all of them were processed, discarded or deleted |
//! | `probing` | the [breaker](super::recovery#breaker-and-pause) opens | an attempt has succeeded, or an operator resumes the endpoint |
//! | `unreached` | a delivery that is run again reaches no layer of the endpoint | all that wait have reached it |
//! | `not reconciled` | a list of the provider could not be read as a whole, or is late by an hour | a round is complete |
//!
//! # Activity
//!
//! Requests and attempts are counted in Postgres by endpoint, hour, outcome and version of the application
//! ([`version`](crate::IdempotentWebhook::version)). The dashboard draws them. In SQL:
//!
//! ```sql
//! select hour, source, outcome, version, count
//! from idempotent_webhook.activity
//! where endpoint = 'billing' and hour > now() - interval '1 day' and source <> 'handler'
//! order by hour, source, outcome, version;
//! ```
//!
//! | `source` | counts |
//! |---|---|
//! | `request` | requests of the provider, by the outcome of `x-webhook-outcome` |
//! | `recovery` | attempts at kept deliveries; in addition, `dead` for each delivery that became dead |
//! | `reconciliation` | `missed`: deliveries that never came |
//! | `ignored` | events that no handler is for ([`Events`](crate::Events)), by their type; `*` where the signature does not cover it, where there are many tenants, and beyond 100 types |
//! | `handler` | calls of the handler. `outcome` is the longest time of the bucket in milliseconds, `1`, `2`, `5` up to `50000`, or `inf` |
//!
//! Each layer adds its numbers every 5 seconds, in one short transaction. A process that is killed loses those of its
//! last 5 seconds. The table `endpoint_settings` has the settings of each endpoint, as the last process has told them,
//! without secrets. [`count_activity(false)`](crate::IdempotentWebhook::count_activity) switches all of this off.
//!
//! # Connections
//!
//! While a handler runs, its delivery holds a connection of the pool, but for what a handler does
//! [before its claim](super::thin_events). With a pool of 20 and the defaults:
//!
//! - 16 connections, four fifths, are for deliveries ([`max_connections`](crate::IdempotentWebhook::max_connections)).
//!   Further ones wait for [`database_timeout`](crate::IdempotentWebhook::database_timeout), and get a 503.
//! - Work in the background takes at most 5 of the 16, a quarter of the pool
//!   ([`Recovery::concurrency`](crate::Recovery::concurrency)).
//! - 4 are left for the layer's short transactions, for handlers that also read through the pool, and for the
//!   dashboard, which takes two at most.
//!
//! Each layer has such a limit of its own. If several layers use one pool, let them share one:
//! `second.share_connections(&first)`.
//!
//! `PgPoolOptions::test_before_acquire(false)` saves a round trip for each delivery. The layer detects a lost
//! connection by itself.
//!
//! # Settings and their defaults
//!
//! | setting of [`IdempotentWebhook`](crate::IdempotentWebhook) | default |
//! |---|---|
//! | `body_limit(bytes)`, `body_timeout(time)` | the provider's, 10 s |
//! | `handler_timeout(time)` | 30 s |
//! | `in_flight_timeout(time)`: how long a duplicate waits for the first | 3/5 of the provider's deadline |
//! | `database_timeout(time)`: each step of the layer | 3 s |
//! | `max_connections(n)` | four fifths of the pool |
//! | `share_connections(&layer)`: one such limit for several layers | each has its own |
//! | `only([..])`: the types of events that are not ignored; with [`Events`](crate::Events), those of the table | all |
//! | `late_claim()`: the handler [claims](super::thin_events) the delivery | off |
//! | `serialize_by(source)`: one delivery of an object [at a time](super::thin_events#one-at-a-time) | off |
//! | `record_failures()`: a table of what is failing | off |
//! | `keep(Keep::failed(&recovery))`: [keeping](super::recovery) | nothing is kept |
//! | `replay_guard()`: an identical body under another id is a duplicate | off |
//! | `compare_bodies()`: a WARN for a duplicate with another body | off |
//! | `also_commit_on(\|status\| …)`: statuses that commit besides 2xx | none |
//! | `allow_unused_transaction()`: no WARN if the handler does not take `DedupeTx` | off |
//! | `count_activity(bool)` | on |
//! | `expect_every(time)`: a longer silence of the provider is an alert | none |
//! | `version(text)`: that of the application, by which activity is counted | none |
//! | `retry_after(time)`: the header of a 503 | 5 s |
//!
//! # Retention
//!
//! A delivery that is sent again after its row was deleted is processed again. [`Retention`](crate::Retention) deletes
//! old rows every hour, in batches, in one process at a time. It keeps deliveries that are due, and those that their
//! provider may still send again, however short the age:
//!
//! ```
//! use std::time::Duration;
//! use idempotent_webhook::Retention;
//!
//! fn retention(pool: sqlx::PgPool) {
//!     // In every process, or in one.
//!     Retention::new(pool, Duration::from_secs(45 * 24 * 60 * 60)).spawn();
//! }
//! ```
//!
//! `Retention` deletes dead deliveries by their age, and archived ones after
//! [`processed_for`](crate::Keep::processed_for). [`prune`](crate::prune) does it once, and refuses an age below the
//! longest redelivery window.
//!
//! If nothing is kept or reconciled, `pg_cron` can do it instead. Otherwise use `Retention`, which knows what may still
//! run, and remembers up to when deliveries may be deleted:
//!
//! ```sql
//! select cron.schedule('prune-webhooks', '17 3 * * *', $$
//!     delete from idempotent_webhook.deliveries
//!     where received_at < now() - greatest(
//!         interval '45 days',
//!         (select max(redelivery_window) from idempotent_webhook.redelivery_windows)
//!     )
//! $$);
//! ```
//!
//! Then delete old rows of the tables `bodies` (with `replay_guard`), `subjects` (with `advance`), `kept_deliveries`
//! (with `record_failures`), `discarded` (with `forget`), `activity`, `rejections`, `endpoint_settings`, and
//! `operator_action_deliveries` before `operator_actions`, too. The dashboard says of what was deleted in this way that
//! it was never received.
//!
//! # Shutdown
//!
//! Handlers outlive their senders. Keep a clone of each layer, which shares its state, and the handles of `spawn`. Wait
//! for them in this order:
//!
//! ```no_run
//! use axum::Router;
//! use idempotent_webhook::IdempotentWebhook;
//! use idempotent_webhook::reconcile::ReconcileTask;
//! use idempotent_webhook::recovery::RecoveryTask;
//! use idempotent_webhook::retention::RetentionTask;
//! use tokio::net::TcpListener;
//!
//! async fn serve(
//!     listener: TcpListener,
//!     app: Router, // with `post(payment).layer(stripe.clone())`
//!     layers: Vec<IdempotentWebhook>,
//!     reconcile: ReconcileTask,
//!     recovery: RecoveryTask,
//!     retention: RetentionTask,
//! ) -> std::io::Result<()> {
//!     // With tokio's feature `signal`. Orchestrators send SIGTERM: see `tokio::signal::unix`.
//!     let stopped = async {
//!         let _ = tokio::signal::ctrl_c().await;
//!     };
//!     axum::serve(listener, app).with_graceful_shutdown(stopped).await?;
//!     reconcile.stop().await;
//!     recovery.stop().await;
//!     for layer in layers {
//!         layer.drained().await;
//!     }
//!     retention.stop().await;
//!     Ok(())
//! }
//! ```
//!
//! With the defaults, this takes about a minute at most, if a handler hangs. Kubernetes kills after 30 seconds unless
//! `terminationGracePeriodSeconds` says otherwise. A process that is killed loses nothing that was acknowledged: its
//! transactions are rolled back.
//!
//! # Upgrade
//!
//! 1. Run [`migrate`](crate::migrate) of the new version, at the start of the application or as a step of the deploy.
//!    Grant the [rights](super::database#tables-and-rights) again.
//! 2. Replace the processes one by one. Old and new ones share the tables. A process skips kept requests in a format
//!    that it does not know.
//! 3. `migrate` of an older version fails on a database that is newer. So an old process that calls it at its start
//!    does not start any more.
//!
//! `CHANGELOG.md` says what else an upgrade needs.
//!
//! [`Endpoint`]: crate::Endpoint
//! [`Endpoint::forget`]: crate::Endpoint::forget
//! [`Endpoint::kept`]: crate::Endpoint::kept
//! [`Endpoint::reprocess`]: crate::Endpoint::reprocess
//! [`Endpoint::reprocess_all`]: crate::Endpoint::reprocess_all
