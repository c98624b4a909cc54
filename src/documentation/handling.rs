//! How does a handler process a delivery?
//!
//! A handler behind [`IdempotentWebhook`] runs in the transaction of the claim. It takes that transaction as
//! [`DedupeTx`], and what is known of the delivery as [`Delivery`]:
//!
//! ```no_run
//! use axum::{Json, Router, http::StatusCode, routing::post};
//! use idempotent_webhook::{
//!     DedupeTx, Delivery, Events, HandlerError, IdempotentWebhook, Secret, presets,
//! };
//!
//! # fn main_(pool: sqlx::PgPool, secret: Secret) {
//! let stripe = IdempotentWebhook::new(pool, "billing", presets::stripe(secret));
//! let events = Events::new().on("invoice.paid", paid).ignore_others();
//! let app: Router = Router::new().route("/webhooks/stripe", post(events.layer(stripe)));
//! # }
//!
#![doc = include_str!("first_handler.rs")]
//! ```
//!
//! [`Events`](crate::Events) has a handler for each type, and each handler its own extractors. Events of other types
//! are [ignored](crate::Events::ignore_others): verified, answered with the provider's success, and nothing more.
//! A provider sends all that its endpoint is subscribed to, which is often far more than handlers are for.
//!
//! A handler for all events is put under the layer itself: `post(handler).layer(stripe)`. It looks at
//! [`Delivery::event_type`] first, and takes the body as [`Bytes`](bytes::Bytes) or `Json<serde_json::Value>`. With
//! `Json<PaidInvoice>` among its parameters, axum answers an event of another shape with 422 before the handler runs.
//! The provider sends such an event again, for three days as a rule, and so does [`Recovery`](crate::Recovery).
//! [`only`](crate::IdempotentWebhook::only) leaves the types that are not wanted out there.
//!
//! A small struct with what the handler needs is all that an event takes: the shapes of providers differ by the
//! version of their API, and a member that a complete type does not know fails each retry. The types of other crates
//! work on the body that the layer has verified: `Webhook::insecure` of async-stripe, and
//! `WebhookEvent::try_from_header_and_body` of octocrab. The crate `examples/typed_events` has both.
//!
//! **A handler does not verify again**, as `construct_event` of async-stripe does. A signature is not kept, and is too
//! old after minutes. So that handler fails at each attempt of recovery.
//!
//! `"billing"` is the **endpoint**, the namespace of delivery ids. Give each route its own name, and keep it for as
//! long as the route exists. After a change of the name, the layer does not know the deliveries that were processed
//! before.
//!
//! Put the layer on the route, closest to the handler, and not around a router. Handlers of other methods come after
//! it: `post(payment).layer(stripe).get(page)`.
//!
//! **A layer of a router covers only the routes that were added before it.** A handler that takes neither `DedupeTx` nor
//! `Delivery` would answer unsigned requests without a word. Of these two lines, the first one verifies nothing:
//!
//! ```no_run
//! # use axum::{Router, routing::post};
//! # use idempotent_webhook::IdempotentWebhook;
//! # async fn payment() {}
//! # fn wrong(stripe: IdempotentWebhook) -> Router {
//! Router::new().layer(stripe).route("/webhooks/stripe", post(payment)) // wrong: the handler is not covered
//! # }
//! # fn right(stripe: IdempotentWebhook) -> Router {
//! Router::new().route("/webhooks/stripe", post(payment).layer(stripe)) // right
//! # }
//! ```
//!
//! A handler that takes `DedupeTx` or `Delivery` answers 500 without the layer. A test sends an unsigned request, and
//! expects that it is refused, with a 401 unless the provider wants another status:
//! [`TestDelivery::unsigned`](crate::testing::TestDelivery::unsigned).
//!
//! # Write through the transaction
//!
//! Write through `&mut *tx`, with the star, and not through the pool. The layer does not see writes through the
//! pool, and cannot roll them back. [`assert_idempotent`](super::testing) finds them. A WARN tells of a success whose
//! handler has not taken `DedupeTx` at all. Do not send `commit` or `rollback` as SQL
//! ([what is refused](crate::DedupeTx#what-is-refused)).
//!
//! Functions that a handler calls take `&mut PgConnection`. In one that takes `&mut DedupeTx`, the executor is
//! `&mut **tx`. [What does it work with?](super::works_with) has both, and other crates.
//!
//! # Say what happened
//!
//! A 2xx means "done", anything else "deliver it again". The layer commits after a 2xx and rolls back after
//! anything else. A handler does not commit.
//!
//! Most errors convert into [`HandlerError`] with `?`. The sender gets a 500 with an empty body, and the log gets
//! the reason. [`HandlerError::status`] sets another status. From an error type of your own, return
//! `(status, HandlerError::from(error), body).into_response()`. Without a `HandlerError`, the reason is the status
//! and the beginning of a textual body.
//!
//! For an event that can never be processed, answer 2xx and record why. That ends it for good.
//!
//! A handler behind [`Recovery`](crate::Recovery) can also set the time of the next attempt
//! ([`retry_after`](crate::HandlerError::retry_after)), or end the retries ([`dead`](crate::HandlerError::dead),
//! [`discard`](crate::HandlerError::discard)). The provider still gets the error, and may deliver again. With
//! `accept_first` it has its 200 already. With `acknowledge` it gets a 200, unless the delivery is discarded.
//!
//! | the handler | the transaction | the sender gets |
//! |---|---|---|
//! | returns 2xx, or a status of [`also_commit_on`](crate::IdempotentWebhook::also_commit_on) | committed | the handler's response |
//! | returns 2xx after a SQL error that it ignored | rolled back | 500 |
//! | returns 2xx, and the commit fails | rolled back, or not known | 503 |
//! | returns another status, or an extractor rejects the request | rolled back | that response |
//! | panics | rolled back | 500 |
//! | takes longer than [`handler_timeout`](crate::IdempotentWebhook::handler_timeout) | rolled back | 503 |
//! | moves its `DedupeTx` or `LateClaim` into a task, or into the body of its response | rolled back | 500 |
//!
//! # A part that may fail
//!
//! A SQL error aborts the whole transaction, so return it. A statement that may fail runs in a savepoint. End it
//! with `commit` or `rollback`; a savepoint that is dropped is rolled back.
//!
//! ```
//! use idempotent_webhook::DedupeTx;
//!
//! async fn notify(tx: &mut DedupeTx, order: i64) -> sqlx::Result<()> {
//!     let mut savepoint = tx.begin().await?;
//!     let noted = sqlx::query("insert into notifications (order_id) values ($1)")
//!         .bind(order)
//!         .execute(&mut *savepoint)
//!         .await;
//!     match noted {
//!         Ok(_) => savepoint.commit().await,
//!         Err(_) => savepoint.rollback().await,
//!     }
//! }
//! ```
//!
//! Put a timeout around a statement, not around the `begin` or `commit` of a savepoint. After a cancelled one, the
//! state of the transaction is not known, and every further statement is refused.
//!
//! A deadlock or a serialization failure is an error like any other. Return it: the next attempt runs the handler
//! again.
//!
//! # A call to another API
//!
//! A call is not rolled back. If the commit fails after it, the handler runs again.
//! [`Delivery::idempotency_key`] is the same on every attempt, and differs by endpoint, delivery and step:
//!
//! ```
//! # use idempotent_webhook::Delivery;
//! # fn refund(delivery: &Delivery) {
//! let key = delivery.idempotency_key("refund");
//! // As the header `Idempotency-Key` of the call.
//! # }
//! ```
//!
//! An API without such keys may be called twice. Ask it first whether the call was made, or accept that.
//!
//! A handler that calls an API before it writes, for example to fetch the object of a thin event, should not hold a
//! connection meanwhile: [`late_claim`](super::thin_events).
//!
//! # Slow work
//!
//! Providers wait for seconds. Insert a job through `&mut *tx`, into a table of your own or
//! [with a queue](super::works_with#job-queues) that takes a connection, and answer 200. The job exists if and only
//! if the delivery was processed. If the handler itself must be slow, keep the delivery and answer first:
//! [`Keep::accept_first`](crate::Keep::accept_first).
//!
//! [`DedupeTx::after_commit`] runs a future in a background task once the commit is confirmed, at most once. It
//! suits waking a worker. Do not use it for work that must not be lost.
//!
//! # Stale events
//!
//! Providers deliver out of order, and so do retries. [`DedupeTx::advance`] records, in the transaction, the
//! highest version of an object that the endpoint has seen:
//!
//! ```
//! use idempotent_webhook::{DedupeTx, Recency};
//!
//! async fn update(tx: &mut DedupeTx, subscription: &str, created: i64, status: &str) -> sqlx::Result<()> {
//!     if tx.advance(subscription, created).await? == Recency::Older {
//!         return Ok(());
//!     }
//!     sqlx::query("update subscriptions set status = $2 where id = $1")
//!         .bind(subscription)
//!         .bind(status)
//!         .execute(&mut **tx)
//!         .await?;
//!     Ok(())
//! }
//! ```
//!
//! Skip only what is `Older`. Stripe's `created` has whole seconds, so two updates within a second are the `Same`.
//! Statements that are right in any order need none of this: `update … where status = 'pending'`.
//!
//! Events of one object that must not be handled at the same time wait for each other with
//! [`serialize_by`](super::thin_events#one-at-a-time).
//!
//! # The body
//!
//! The body is the raw body, and all of axum's extractors work. A body that does not parse is answered with axum's
//! own 4xx, and its text is the reason in the log. Set the content type of a GitHub webhook to
//! `application/json`: its default is a form. [Google Pub/Sub](super::providers#google-pubsub) wraps its messages,
//! and [AWS SNS](super::providers#aws-sns) sends them as `text/plain`.
//!
//! # A disconnect
//!
//! From BEGIN to COMMIT the work runs in a task of its own. The handler has its
//! [`handler_timeout`](crate::IdempotentWebhook::handler_timeout), whether or not the sender hangs up.
//!
//! # If the compiler objects
//!
//! - "the trait `Handler` is not satisfied": `#[axum::debug_handler]` on the handler tells why.
//! - "the trait `Executor` is not satisfied" for `&mut tx`: write `&mut *tx`.
//! - "no method named `layer`" for `Events`: `ignore_others()` or `otherwise(..)` completes it.
//! - "the trait `Handler` is not satisfied" for `EventHandlers`: it is `post(events.layer(webhook))`, with the layer
//!   within `post`.
//! - E0283 at the first of two layers of a route: `.layer::<_, Infallible>(layer)`.
//! - A body of the wrong type in a `ServiceBuilder`: `.map_request(|request: Request<_>| request.map(Body::new))`
//!   in front of the layer ([middlewares](super::works_with#middlewares)).
//!
//! # What is answered
//!
//! Every response has the outcome in the header [`x-webhook-outcome`](crate::OUTCOME_HEADER), and as
//! [`Outcome`](crate::Outcome) in its extensions.
//!
//! | what happened | status | outcome |
//! |---|---|---|
//! | the handler answered 2xx, and the commit was confirmed | the handler's response | `processed` |
//! | duplicate of a processed delivery | 200, empty | `duplicate` |
//! | duplicate, and the first is still in flight when the wait ends | 503, `Retry-After` | `in-flight` |
//! | another delivery of the object is still in flight when the wait ends ([`serialize_by`](crate::IdempotentWebhook::serialize_by)) | 503, `Retry-After` | `in-flight`, or `kept` |
//! | signature missing, malformed, wrong or too old | 401 | `rejected` |
//! | the provider's key could not be fetched; any of these, where keys are fetched for many tenants | 503, `Retry-After` | `rejected` |
//! | delivery id missing or unusable; body not JSON where JSON is needed | 400 | `rejected` |
//! | body too large, too slow, broken off | 413, 408, 400 | `rejected` |
//! | a method that is not the provider's, which is POST | 405 | `rejected` |
//! | the handler answered anything else | the handler's response | `failed`, or `kept` |
//! | the handler panicked, ignored a SQL error, or moved its `DedupeTx` | 500 | `failed`, or `kept` |
//! | the handler ran out of time, or the commit failed | 503, `Retry-After` | `failed`, or `kept` |
//! | any of the three above, with [`acknowledge`](crate::Keep::acknowledge), once it is kept | 200, empty | `kept` |
//! | a delivery that is not processed yet, with [`accept_first`](crate::Keep::accept_first), once it is kept | 200, empty | `accepted` |
//! | Postgres cannot be reached; a tenant's secrets cannot be looked up; with `accept_first`, the quota is full | 503, `Retry-After` | `failed` |
//! | an event of a type that no handler is for ([`Events`](crate::Events), [`only`](crate::IdempotentWebhook::only)) | 200, empty | `ignored` |
//! | handshake, such as Slack's `url_verification` | that of the provider, usually 200 with the challenge | `handshake` |
//!
//! [`answers`](super::answers) has the cure for each.
//!
//! A failure is never answered with 410, which some senders take as an order to delete the endpoint: a handler's 410
//! becomes 500, unless [`also_commit_on`](crate::IdempotentWebhook::also_commit_on) commits it.
//!
//! Some providers retry only after certain statuses. Their presets answer every failure and every rejection with one
//! of those, in place of what the table says: Zendesk retries after a 503, and gives up after a 500. A wrong signature
//! is among them, as the secret may have been changed at the provider first ([`Provider::success_status`],
//! [`Provider::failure_status`], [`Provider::rejection_status`]). What each answer makes each provider do is a
//! [table](super::provider_table#what-each-answer-makes-the-provider-do).
//!
//! [`DedupeTx`]: crate::DedupeTx
//! [`DedupeTx::advance`]: crate::DedupeTx::advance
//! [`DedupeTx::after_commit`]: crate::DedupeTx::after_commit
//! [`Delivery`]: crate::Delivery
//! [`Delivery::event_type`]: crate::Delivery::event_type
//! [`Delivery::idempotency_key`]: crate::Delivery::idempotency_key
//! [`HandlerError`]: crate::HandlerError
//! [`HandlerError::status`]: crate::HandlerError::status
//! [`HandlerError::retry_after`]: crate::HandlerError::retry_after
//! [`IdempotentWebhook`]: crate::IdempotentWebhook
//! [`Provider::failure_status`]: crate::Provider::failure_status
//! [`Provider::rejection_status`]: crate::Provider::rejection_status
//! [`Provider::success_status`]: crate::Provider::success_status
