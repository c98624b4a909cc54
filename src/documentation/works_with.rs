//! What does it work with?
//!
//! # Functions that take a connection
//!
//! A [`DedupeTx`](crate::DedupeTx) dereferences to [`PgConnection`](sqlx::PgConnection). So does a
//! [`Savepoint`](crate::Savepoint). Let functions take `&mut PgConnection`; callers with a pool or a
//! `sqlx::Transaction` can call them as well:
//!
//! ```
//! use axum::http::StatusCode;
//! use idempotent_webhook::{DedupeTx, HandlerError};
//! use sqlx::PgConnection;
//!
//! async fn mark_paid(connection: &mut PgConnection, order: i64) -> sqlx::Result<()> {
//!     sqlx::query("update orders set status = 'paid' where id = $1")
//!         .bind(order)
//!         .execute(&mut *connection)
//!         .await?;
//!     Ok(())
//! }
//!
//! async fn handler(mut tx: DedupeTx) -> Result<StatusCode, HandlerError> {
//!     mark_paid(&mut tx, 1).await?;
//!     Ok(StatusCode::OK)
//! }
//! ```
//!
//! A function can take `&mut DedupeTx` as well, to use [`DedupeTx::advance`](crate::DedupeTx::advance) or
//! savepoints. A query within it takes two stars, `&mut **tx`: one for the reference, one for the
//! `DedupeTx`.
//!
//! ```
//! # use idempotent_webhook::{DedupeTx, Recency};
//! async fn cancel(tx: &mut DedupeTx, subscription: &str, version: i64) -> sqlx::Result<()> {
//!     if tx.advance(subscription, version).await? != Recency::Older {
//!         sqlx::query("update subscriptions set state = 'canceled' where id = $1")
//!             .bind(subscription)
//!             .execute(&mut **tx)
//!             .await?;
//!     }
//!     Ok(())
//! }
//! ```
//!
//! A function that takes `&mut Transaction<'_, Postgres>` cannot be called: there is no
//! `sqlx::Transaction`, because the function could commit it. Change its parameter to
//! `&mut PgConnection`. A function that calls `connection.begin()` makes a savepoint of sqlx's own;
//! [`DedupeTx`](crate::DedupeTx#what-is-refused) says what to heed then.
//!
//! # sqlx's macros, sea-query and other builders
//!
//! `sqlx::query!`, and every query builder whose queries run on a `PgConnection`, run on `&mut *tx`.
//!
//! # SeaORM 2
//!
//! SeaORM 2 has sqlx 0.9, as this crate has. The layer takes the pool of its connection. With the feature `sea-orm`,
//! `tx.sea_orm()` is what entities take, and savepoints are `begin` and `transaction` of its trait `TransactionTrait`:
//!
//! ```text
//! async fn paid(mut tx: DedupeTx, delivery: Delivery) -> Result<StatusCode, HandlerError> {
//!     let payment = payment::ActiveModel {
//!         event_id: Set(delivery.id().to_string()),
//!     };
//!     payment.insert(&tx.sea_orm()).await?;
//!     Ok(StatusCode::OK)
//! }
//!
//! let pool = database.get_postgres_connection_pool().clone();
//! let stripe = IdempotentWebhook::new(pool, "billing", presets::stripe(secret));
//! ```
//!
//! Functions that handlers call take `&impl ConnectionTrait`, or `&impl TransactionTrait` if they call `begin` or the
//! methods of an `ActiveModelEx`. A function that takes `&DatabaseConnection` or `&DatabaseTransaction` cannot be
//! called, and nothing is streamed. A unique violation is found by `sql_err()`, in a savepoint if the handler goes on.
//!
//! **`.insert(&database)`, `.exec(&database)` and `database.begin()` use a connection of SeaORM's own.** What they
//! write is not part of the transaction, and may happen twice.
//!
//! Without the feature, entities make the statements, and sqlx runs them in the transaction, with the crate
//! `sea-query-sqlx` 0.9 (feature `sqlx-postgres`):
//!
//! ```text
//! use sea_orm::sea_query::PostgresQueryBuilder;
//! use sea_query_sqlx::SqlxBinder;
//!
//! let insert = payment::Entity::insert(payment).into_query();
//! let (sql, values) = insert.build_sqlx(PostgresQueryBuilder);
//! // The values are bound, and are not part of the text.
//! sqlx::query_with(sqlx::AssertSqlSafe(sql), values)
//!     .execute(&mut *tx)
//!     .await?;
//! ```
//!
//! # sqlx 0.8, SeaORM 1, Diesel and tokio-postgres
//!
//! They have connections of their own, and cannot write in this transaction. What they write there may happen twice.
//! Three ways out:
//!
//! - Claim the delivery in a transaction of theirs: [drivers](super::drivers) has a program for each.
//! - Write with sqlx 0.9 in webhook handlers.
//! - Insert a job through `&mut *tx`, and use the ORM in the worker, with
//!   [`Delivery::idempotency_key`](crate::Delivery::idempotency_key) as a unique key of what it
//!   writes.
//!
//! # Job queues
//!
//! A queue works if its enqueue function takes a connection of sqlx 0.9, or is a function in SQL. With
//! graphile_worker, for example:
//!
//! ```text
//! jobs.with_executor(&mut *tx).add_job(job, JobSpec::default()).await?;
//! ```
//!
//! The job exists if and only if the delivery was processed. A queue that only takes its own pool
//! does not work: its job exists even if the delivery is rolled back.
//!
//! # axum extractors
//!
//! `Json`, `Form`, `Bytes`, `Path`, `State` and so on work as usual. The body is the raw body, and
//! axum's own limit of 2 MB is replaced by the provider's. A rejection of an extractor is rolled back.
//!
//! `Option<DedupeTx>` and `Option<Delivery>` are `None` on a route without the layer, for a handler
//! that serves both.
//!
//! # aide
//!
//! [`DedupeTx`](crate::DedupeTx) and [`Delivery`](crate::Delivery) are not part of an API's
//! description. Wrap them: `NoApi(mut tx): NoApi<DedupeTx>`.
//!
//! # Middlewares
//!
//! tower-http's `TraceLayer` goes around the layer; the span of a delivery is within its span. A
//! middleware between the layer and the handler sees a response before it is committed. One around
//! the layer must not change the body: decompression breaks every signature. A `TimeoutLayer` around
//! the layer shortens the answer, not the work, which finishes in its own task; set
//! [`handler_timeout`](crate::IdempotentWebhook::handler_timeout) instead.
//!
//! With a second `.layer(..)` on one method router, the compiler asks for the error type of the first
//! (E0283). It is `Infallible`:
//!
//! ```
//! use std::convert::Infallible;
//!
//! use axum::routing::{MethodRouter, post};
//! # use idempotent_webhook::{DedupeTx, IdempotentWebhook};
//! use tower_http::trace::TraceLayer;
//!
//! # fn build(webhook: IdempotentWebhook) -> MethodRouter {
//! # async fn push(_: DedupeTx) {}
//! post(push)
//!     .layer::<_, Infallible>(webhook)
//!     .layer(TraceLayer::new_for_http())
//! # }
//! ```
//!
//! In a `tower::ServiceBuilder`, a layer that changes the type of the request's body needs one line
//! after it, here of tower's feature `util`:
//!
//! ```
//! use axum::body::Body;
//! use axum::extract::Request;
//! # use axum::routing::MethodRouter;
//! # use idempotent_webhook::IdempotentWebhook;
//! use tower::ServiceBuilder;
//! # use tower_http::limit::RequestBodyLimitLayer;
//! # fn build(route: MethodRouter, webhook: IdempotentWebhook) -> MethodRouter {
//! route.layer(
//!     ServiceBuilder::new()
//!         .layer(RequestBodyLimitLayer::new(1024 * 1024))
//!         .map_request(|request: Request<_>| request.map(Body::new))
//!         .layer(webhook),
//! )
//! # }
//! ```
//!
//! # Plain tower
//!
//! Without the feature `axum` the layer works with any `tower::Service` of `http::Request<B>` whose
//! body types can be made from `Bytes`. Handlers use [`DedupeTx::take`](crate::DedupeTx::take).
