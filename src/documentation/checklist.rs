//! The points that every guide to receiving webhooks makes, and what does each of them
//! here.
//!
//! | | point | done by |
//! |---|---|---|
//! | 1 | [Expect every delivery more than once](#1-expect-every-delivery-more-than-once) | the layer |
//! | 2 | [Know a delivery by a stable id](#2-know-a-delivery-by-a-stable-id) | the preset |
//! | 3 | [Take the provider's id, not one of your own](#3-take-the-providers-id-not-one-of-your-own) | the preset |
//! | 4 | [Dedupe on receipt](#4-dedupe-on-receipt) | the layer |
//! | 5 | [Claim and work atomically](#5-claim-and-work-atomically) | [`DedupeTx`] |
//! | 6 | [Let ids expire, but not too soon](#6-let-ids-expire-but-not-too-soon) | [`Retention`] |
//! | 7 | [Make effects conditional](#7-make-effects-conditional) | you, with [`DedupeTx::advance`] |
//! | 8 | [Hand keys on to what you call](#8-hand-keys-on-to-what-you-call) | you, with [`Delivery::idempotency_key`] |
//! | 9 | [Put slow work into an outbox](#9-put-slow-work-into-an-outbox) | you, through [`DedupeTx`] |
//! | 10 | [Answer with the right status](#10-answer-with-the-right-status) | the layer |
//! | 11 | [Test with duplicates](#11-test-with-duplicates) | you, with `testing` |
//! | 12 | [Watch it](#12-watch-it) | you, with `metrics` |
//!
//! # 1. Expect every delivery more than once
//!
//! Every provider delivers at least once: again after a timeout, after an answer that got
//! lost, and at somebody's request. Handlers behind [`IdempotentWebhook`] see one that was
//! committed no second time:
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
//! Left to you: a handler may still *run* more than once, if the attempt before was rolled
//! back. Points 7 to 9 are about what it does outside its transaction.
//!
//! # 2. Know a delivery by a stable id
//!
//! Neither a signature, which changes with each attempt, nor a time of receipt will do. Each
//! preset takes what its provider repeats on every retry; for any other,
//! [`Provider::delivery_id`] names the place, from a header, a JSON path, several of them, or
//! a digest of the body. What has no usable id is a 400, never processed without dedupe.
//!
//! # 3. Take the provider's id, not one of your own
//!
//! An id made on receipt is a new one for each attempt. [`Source`] only takes ids out of the
//! request. Mind whether the signature covers it ([`Provider::signs_delivery_id`]): where it
//! does not, [`IdempotentWebhook::replay_guard`] claims a digest of the body as well.
//!
//! Left to you: some providers make two events of one change. Where that matters, choose an
//! id that both share: `.delivery_id(Source::json("$.data.object.id".parse()?).and(..))`.
//!
//! # 4. Dedupe on receipt
//!
//! Duplicates are answered with 200 before the handler is called, in every process that
//! shares the database, also if they arrive at the same moment. With
//! [`IdempotentWebhook::cache_processed`], without asking Postgres.
//!
//! # 5. Claim and work atomically
//!
//! Checking first and recording later loses a race or an event. The claim is one insert, in
//! the transaction in which the handler writes:
//!
//! ```no_run
//! # use idempotent_webhook::DedupeTx;
//! # use axum::http::StatusCode;
//! async fn payment(mut tx: DedupeTx) -> Result<StatusCode, StatusCode> {
//!     sqlx::query("update orders set status = 'paid' where id = 1")
//!         .execute(&mut *tx)
//!         .await
//!         .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
//!     Ok(StatusCode::OK)
//! }
//! ```
//!
//! Left to you: write through `tx` and not through a connection of your own.
//!
//! # 6. Let ids expire, but not too soon
//!
//! `Retention::new(pool, age).spawn()` forgets old deliveries, and of each endpoint none
//! that its provider may still deliver again ([`Provider::redelivery_window`]).
//! [`prune`](crate::prune) does it once and refuses an age that is too short.
//!
//! # 7. Make effects conditional
//!
//! Dedupe does not put events in order. `tx.advance("sub_123", event.created)` says in the
//! same transaction how this event compares with the newest that was seen of a subject. Skip
//! one that is [`Older`](crate::Recency::Older), and only that: two events of one second are
//! the [`Same`](crate::Recency::Same).
//!
//! Left to you: what the version of a subject is; and statements that are right whatever
//! came before, such as `update … where status = 'pending'`.
//!
//! # 8. Hand keys on to what you call
//!
//! A call to another API is not rolled back. `delivery.idempotency_key("refund")` is the
//! same key on every attempt, for whoever takes an `Idempotency-Key`.
//!
//! Left to you: a call to an API that takes none may happen twice. Ask first whether it has
//! been done, or accept it.
//!
//! # 9. Put slow work into an outbox
//!
//! Providers wait for seconds. Write a job through `tx`, answer 200, and do the work from
//! there: the job is there if and only if the delivery was processed. The example
//! `examples/outbox` in the repository does so with an existing queue. For what may get
//! lost, such as waking a worker, there is [`DedupeTx::after_commit`].
//!
//! # 10. Answer with the right status
//!
//! A 2xx leaves only after the commit, a duplicate is a 200, a wrong signature a 401, an
//! unusable request a 400, and what may succeed later is a 503 with `Retry-After`. It is
//! never a 410, which some senders take as an order to delete the endpoint.
//!
//! Left to you: answer 2xx for "done", anything else for "again, please". For an event that
//! can never be processed, answer 2xx and write down why, or see
//! [`IdempotentWebhook::also_commit_on`].
//!
//! # 11. Test with duplicates
//!
//! The feature `testing` signs requests as each provider does, and asserts that a handler
//! has its effects once, whatever arrives at the same moment and again:
//! `assert_idempotent(&app, &TestDelivery::new(&presets::stripe(Secret::new("whsec_test").unwrap())), effects)`. The example
//! `replay` sends a captured webhook to a URL, as often as asked.
//!
//! # 12. Watch it
//!
//! The feature `metrics` counts outcomes and rejections and measures claims, handlers and
//! commits; one span a delivery names it in the log;
//! [`IdempotentWebhook::record_failures`] keeps a table of what is failing, since when and
//! how often. [`Endpoint::forget`](crate::Endpoint::forget) has a delivery processed once more.
//!
//! Left to you: the alert. Deliveries that keep failing are lost when the provider gives up.
//!
//! [`IdempotentWebhook`]: crate::IdempotentWebhook
//! [`IdempotentWebhook::replay_guard`]: crate::IdempotentWebhook::replay_guard
//! [`IdempotentWebhook::cache_processed`]: crate::IdempotentWebhook::cache_processed
//! [`IdempotentWebhook::also_commit_on`]: crate::IdempotentWebhook::also_commit_on
//! [`IdempotentWebhook::record_failures`]: crate::IdempotentWebhook::record_failures
//! [`DedupeTx`]: crate::DedupeTx
//! [`DedupeTx::advance`]: crate::DedupeTx::advance
//! [`DedupeTx::after_commit`]: crate::DedupeTx::after_commit
//! [`Delivery::idempotency_key`]: crate::Delivery::idempotency_key
//! [`Provider::delivery_id`]: crate::Provider::delivery_id
//! [`Provider::signs_delivery_id`]: crate::Provider::signs_delivery_id
//! [`Provider::redelivery_window`]: crate::Provider::redelivery_window
//! [`Retention`]: crate::Retention
//! [`Source`]: crate::Source
