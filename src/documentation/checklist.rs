//! The advice that every guide to receiving webhooks gives, and what follows it here.
//!
//! | | advice | followed by |
//! |---|---|---|
//! | 1 | [Expect every delivery more than once](#1-expect-every-delivery-more-than-once) | the layer |
//! | 2 | [Identify a delivery by a stable id](#2-identify-a-delivery-by-a-stable-id) | the preset |
//! | 3 | [Use the provider's id, not one of your own](#3-use-the-providers-id-not-one-of-your-own) | the preset |
//! | 4 | [Dedupe on receipt](#4-dedupe-on-receipt) | the layer |
//! | 5 | [Claim and work atomically](#5-claim-and-work-atomically) | [`DedupeTx`] |
//! | 6 | [Let ids expire, but not too soon](#6-let-ids-expire-but-not-too-soon) | [`Retention`] |
//! | 7 | [Make effects conditional](#7-make-effects-conditional) | you, with [`DedupeTx::advance`] |
//! | 8 | [Pass idempotency keys on](#8-pass-idempotency-keys-on) | you, with [`Delivery::idempotency_key`] |
//! | 9 | [Put slow work into an outbox](#9-put-slow-work-into-an-outbox) | you, through [`DedupeTx`] |
//! | 10 | [Answer with the right status](#10-answer-with-the-right-status) | the layer |
//! | 11 | [Test with duplicates](#11-test-with-duplicates) | you, with `testing` |
//! | 12 | [Run again what has failed](#12-run-again-what-has-failed) | [`Recovery`] |
//! | 13 | [Watch it](#13-watch-it) | you, with `metrics` |
//!
//! # 1. Expect every delivery more than once
//!
//! Every provider delivers at least once: again after a timeout, after a lost answer, and on
//! request. Handlers behind [`IdempotentWebhook`] do not see a delivery again that was committed:
//!
//! ```no_run
//! # use axum::{Router, routing::post};
//! # use idempotent_webhook::{IdempotentWebhook, Secret, presets};
//! # async fn payment() {}
//! # fn main_(pool: sqlx::PgPool, secret: Secret) {
//! let stripe = IdempotentWebhook::new(pool, "billing", presets::stripe(secret));
//! let app: Router = Router::new().route("/webhooks/stripe", post(payment).layer(stripe));
//! # }
//! ```
//!
//! Left to you: a handler may still *run* more than once, if an attempt was rolled back. Points 7 to
//! 9 are about what it does outside its transaction.
//!
//! # 2. Identify a delivery by a stable id
//!
//! A signature may change with each attempt, and so does the time of receipt. Each preset uses what its
//! provider repeats on every retry, where there is such a thing and it differs from one delivery to
//! the next. Where there is not, the preset rather runs a retry again than take a delivery for another
//! one: the column *retry* of `PROVIDERS.md`, and [`Provider::get_retry`], say which these are, and
//! where nobody knows. For any other provider, [`Provider::delivery_id`] names the place: a header, a
//! JSON path, several of them, the signed time, or a digest of the body. A request without a usable id is
//! a 400, never processed without dedupe.
//!
//! Left to you: a handler of such a provider that may run twice for one delivery.
//!
//! # 3. Use the provider's id, not one of your own
//!
//! An id that is made on receipt differs for each attempt. [`Source`] only reads ids out of the
//! request. Check whether the signature covers it ([`Provider::signs_delivery_id`]). If it does not,
//! [`IdempotentWebhook::replay_guard`] also claims a digest of the body.
//!
//! Left to you: some providers send two events for one change. Where that matters, choose an id that
//! both share: `.delivery_id(Source::json("$.data.object.id".parse()?).and(..))`.
//!
//! # 4. Dedupe on receipt
//!
//! Duplicates are answered with 200 before the handler is called, in every process that shares the
//! database, even if they arrive at the same moment.
//!
//! # 5. Claim and work atomically
//!
//! Checking first and recording later loses a race or an event. The claim is one insert, in the
//! transaction in which the handler writes:
//!
//! ```no_run
//! # use idempotent_webhook::{DedupeTx, HandlerError};
//! # use axum::http::StatusCode;
//! async fn payment(mut tx: DedupeTx) -> Result<StatusCode, HandlerError> {
//!     sqlx::query("update orders set status = 'paid' where id = 1")
//!         .execute(&mut *tx)
//!         .await?;
//!     Ok(StatusCode::OK)
//! }
//! ```
//!
//! Left to you: write through `tx`, not through a connection of your own. The layer warns of a
//! success whose handler has not taken `DedupeTx`.
//!
//! # 6. Let ids expire, but not too soon
//!
//! `Retention::new(pool, age).spawn()` deletes old deliveries, and keeps those that their provider may
//! still redeliver ([`Provider::redelivery_window`]). [`prune`](crate::prune) does it once and refuses
//! an age that is too short.
//!
//! # 7. Make effects conditional
//!
//! Dedupe does not put events in order. `tx.advance("sub_123", event.created)` compares an event, in the
//! same transaction, with the newest one seen of a subject. Skip one that is
//! [`Older`](crate::Recency::Older), and only that: two events within a second are the
//! [`Same`](crate::Recency::Same).
//!
//! Left to you: what the version of a subject is, and statements that are right in any order, such as
//! `update … where status = 'pending'`.
//!
//! # 8. Pass idempotency keys on
//!
//! A call to another API is not rolled back. `delivery.idempotency_key("refund")` is the same key on
//! every attempt, for an API that takes an `Idempotency-Key`.
//!
//! Left to you: a call to an API without such keys may happen twice. Query first whether it has
//! happened, or accept it.
//!
//! # 9. Put slow work into an outbox
//!
//! Providers wait for seconds. Insert a job through `tx`, answer 200, and do the work in a worker: the
//! job exists if and only if the delivery was processed ([job queues](super::works_with#job-queues)).
//! For work that may be lost, such as waking a worker, there is [`DedupeTx::after_commit`].
//!
//! # 10. Answer with the right status
//!
//! A 2xx leaves only after the commit, a duplicate is a 200, a wrong signature a 401, an unusable
//! request a 400, and a failure that may pass is a 503 with `Retry-After`. The layer never answers 410,
//! which some senders take as an order to delete the endpoint. Where a provider counts otherwise, its
//! preset answers so: [`Provider::success_status`], [`Provider::failure_status`].
//!
//! Left to you: answer 2xx for "done", and anything else for "deliver it again". For an event that can
//! never be processed, answer 2xx and record why, or see [`IdempotentWebhook::also_commit_on`].
//!
//! # 11. Test with duplicates
//!
//! The feature `testing` signs requests as the provider does, and asserts that a delivery takes effect
//! once, whether its copies arrive at the same moment or later:
//! `assert_idempotent(&app, &TestDelivery::new(&provider), effects)`. The example `replay` sends a
//! captured webhook to a URL.
//!
//! # 12. Run again what has failed
//!
//! Some providers never retry, and the others give up or disable the endpoint.
//! [`Keep::failed`] keeps a delivery that failed, with its request, and [`Recovery`] runs it again until
//! it is processed or dead. [`Keep::all`] keeps each delivery before its handler runs, so that none is lost
//! with a process that is killed. For a handler that is slower than the provider's deadline,
//! [`Keep::accept_first`] also answers first, and runs the handler in the background
//! ([recovery](super::recovery)). For those that never come, compare with the provider's list of events
//! ([reconciliation](super::reconciliation)).
//!
//! Left to you: to spawn `Recovery` in each process that serves the routes, and to look at dead deliveries
//! ([`Endpoint::retry`], [`Endpoint::discard`]). If a handler has done something wrong, mend it and
//! [reprocess](crate::Endpoint::reprocess) its deliveries ([`Keep::processed_for`]).
//!
//! # 13. Watch it
//!
//! The feature `metrics` counts outcomes and rejections, and measures claims, handlers and commits. One
//! span for each request names the delivery in the log. [`IdempotentWebhook::record_failures`] records
//! what is failing, since when and how often. [`Endpoint::forget`] has a delivery processed again. The
//! feature `dashboard` has pages for all of this.
//!
//! Left to you: the alert. Deliveries that fail and are not kept are lost when the provider gives up,
//! and dead ones wait for somebody.
//!
//! [`IdempotentWebhook`]: crate::IdempotentWebhook
//! [`IdempotentWebhook::replay_guard`]: crate::IdempotentWebhook::replay_guard
//! [`IdempotentWebhook::also_commit_on`]: crate::IdempotentWebhook::also_commit_on
//! [`IdempotentWebhook::record_failures`]: crate::IdempotentWebhook::record_failures
//! [`DedupeTx`]: crate::DedupeTx
//! [`DedupeTx::advance`]: crate::DedupeTx::advance
//! [`DedupeTx::after_commit`]: crate::DedupeTx::after_commit
//! [`Delivery::idempotency_key`]: crate::Delivery::idempotency_key
//! [`Keep::accept_first`]: crate::Keep::accept_first
//! [`Keep::all`]: crate::Keep::all
//! [`Keep::failed`]: crate::Keep::failed
//! [`Keep::processed_for`]: crate::Keep::processed_for
//! [`Provider::delivery_id`]: crate::Provider::delivery_id
//! [`Provider::failure_status`]: crate::Provider::failure_status
//! [`Provider::get_retry`]: crate::Provider::get_retry
//! [`Provider::success_status`]: crate::Provider::success_status
//! [`Provider::signs_delivery_id`]: crate::Provider::signs_delivery_id
//! [`Provider::redelivery_window`]: crate::Provider::redelivery_window
//! [`Recovery`]: crate::Recovery
//! [`Endpoint::discard`]: crate::Endpoint::discard
//! [`Endpoint::forget`]: crate::Endpoint::forget
//! [`Endpoint::retry`]: crate::Endpoint::retry
//! [`Retention`]: crate::Retention
//! [`Source`]: crate::Source
