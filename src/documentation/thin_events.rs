//! How does a handler fetch an object first, and what if two events are about one object?
//!
//! # Fetch, begin, advance
//!
//! A thin event says that an object has changed, and not how. Stripe recommends them, since a handler that fetches the
//! object gets its newest state, in the version of the API that it knows. But a call to an API takes hundreds of
//! milliseconds. A handler that takes [`DedupeTx`] holds a connection of the pool meanwhile, and a few slow calls
//! keep all other requests from Postgres.
//!
//! With [`late_claim`], the handler runs before the claim, and holds no connection until [`LateClaim::begin`]:
//!
//! ```no_run
//! use axum::{Json, Router, http::StatusCode, routing::post};
//! use idempotent_webhook::{
//!     Events, HandlerError, IdempotentWebhook, LateClaim, Recency, Secret, presets,
//! };
//!
//! # fn main_(pool: sqlx::PgPool, secret: Secret) {
//! let stripe = IdempotentWebhook::new(pool, "subscriptions", presets::stripe(secret)).late_claim();
//! // Stripe's thin events have names of their own, such as `v1.customer.subscription.updated`.
//! let events = Events::new().on("v1.customer.subscription.*", updated).ignore_others();
//! let app: Router = Router::new().route("/webhooks/stripe", post(events.layer(stripe)));
//! # }
//!
//! #[derive(serde::Deserialize)]
//! struct Thin { related_object: Object }
//! #[derive(serde::Deserialize)]
//! struct Object { id: String }
//!
//! async fn updated(claim: LateClaim, Json(event): Json<Thin>) -> Result<StatusCode, HandlerError> {
//!     let id = event.related_object.id;
//!     let subscription = fetch(&id).await?; // No connection is held.
//!     let mut tx = claim.begin().await?; // From here on it is as with `DedupeTx`.
//!     if tx.advance(&id, subscription.version).await? != Recency::Older {
//!         sqlx::query("update subscriptions set status = $2 where id = $1")
//!             .bind(&id)
//!             .bind(&subscription.status)
//!             .execute(&mut *tx)
//!             .await?;
//!     }
//!     Ok(StatusCode::OK)
//! }
//! # struct Subscription { version: i64, status: String }
//! # async fn fetch(id: &str) -> std::io::Result<Subscription> {
//! #     Ok(Subscription { version: 1, status: id.to_owned() })
//! # }
//! ```
//!
//! Two events of one object may be fetched in one order and begun in the other. [`advance`](crate::DedupeTx::advance) leaves
//! out the older state, whichever comes last, so the row ends at the newest one. The version has to be part of the
//! object, and to grow with each change: a counter, or the time of the last change. An object that has neither, such as
//! a subscription of Stripe, is advanced by the time of the fetch, taken before it and by one clock: that of Postgres
//! (`select (extract(epoch from clock_timestamp()) * 1000000)::bigint`), since those of two hosts differ.
//!
//! All handlers of a route with `late_claim` take [`LateClaim`](crate::LateClaim); those that fetch nothing call `begin`
//! first. A thin destination of Stripe has a secret of its own, so it is best given a route and an endpoint of its own.
//!
//! # What is promised
//!
//! - What the handler does before `begin` may happen more than once: a second process may run the handler at the same
//!   time, and so does the next attempt after a failure. Pass an
//!   [`idempotency_key`](crate::Delivery::idempotency_key) to a call that has an effect.
//! - Of all attempts, one gets through `begin` and commits. The others get a [`BeginError`](crate::BeginError),
//!   which `?` returns, and the layer answers for them: 200 as a duplicate once the other one has committed, 503 if it is
//!   still at work when [`in_flight_timeout`] is over, or if Postgres is away. It does so whatever the handler
//!   returns.
//! - A duplicate of what was processed does not reach the handler. The layer looks it up first, in a short transaction.
//!   Duplicates in one process wait for the first, as they do without a late claim.
//! - A handler that answers 2xx and has not called `begin` has nothing to write. The layer claims the delivery then.
//! - After any other answer nothing is committed. With [`Keep`](crate::Keep), the failure is kept.
//! - A [`LateClaim`](crate::LateClaim) that is moved into a task is answered with 500, as a `DedupeTx` is.
//! - A process that is killed before `begin` loses the call, and nothing else. With [`Keep::all`](crate::Keep::all), the
//!   delivery runs again in another process within about ten seconds.
//! - [`handler_timeout`] is for the whole handler, with the wait in `begin`, which takes at most half of what is left.
//!
//! The metric `idempotent_webhook_before_claim_seconds` has the time from the call of the handler to `begin`.
//!
//! # One at a time
//!
//! Handlers of two events of one object run side by side otherwise. With [`serialize_by`], the second one waits until
//! the first one has committed or failed, in whichever process that runs:
//!
//! ```no_run
//! # use idempotent_webhook::{IdempotentWebhook, Source, provider::JsonPathError};
//! # fn layer(stripe: IdempotentWebhook) -> Result<IdempotentWebhook, JsonPathError> {
//! // A thin event has the object in another place than a snapshot.
//! let object = Source::json("$.related_object.id".parse()?).or(Source::json("$.data.object.id".parse()?));
//! # Ok(
//! stripe.serialize_by(object)
//! # )
//! # }
//! ```
//!
//! It is for handlers that read a state and write what follows from it. It is no order: of two that wait, either may be
//! next, and a delivery that failed runs after later ones. `advance` leaves out what is older, and both together are
//! enough for most handlers.
//!
//! A wait that is over is a 503. The provider sends the delivery again, or recovery runs it if the layer has a
//! [`Keep`](crate::Keep). **Without a `Keep`, a provider that does not retry, as GitHub, loses it.**
//!
//! With a late claim, handlers of one process are one at a time as a whole. Those of two processes are so from `begin`
//! on.
//!
//! [`DedupeTx`]: crate::DedupeTx
//! [`LateClaim::begin`]: crate::LateClaim::begin
//! [`late_claim`]: crate::IdempotentWebhook::late_claim
//! [`serialize_by`]: crate::IdempotentWebhook::serialize_by
//! [`in_flight_timeout`]: crate::IdempotentWebhook::in_flight_timeout
//! [`handler_timeout`]: crate::IdempotentWebhook::handler_timeout
