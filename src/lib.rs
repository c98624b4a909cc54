//! A tower layer for axum that makes webhook endpoints idempotent: it verifies a delivery,
//! claims it in Postgres, and lets the handler write in the transaction of the claim. Both
//! commit together before the response leaves, or neither does.
//!
//! ```no_run
//! use axum::{Router, http::StatusCode, routing::post};
//! use idempotent_webhook::{DedupeTx, Delivery, IdempotentWebhook, Provider, Secret};
//!
//! # async fn main_(pool: sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
//! idempotent_webhook::migrate(&pool).await?;
//! let secret = Secret::new(std::env::var("STRIPE_WEBHOOK_SECRET")?)?;
//! let stripe = IdempotentWebhook::new(pool, "billing", Provider::stripe(secret));
//! let app: Router = Router::new().route("/webhooks/stripe", post(payment).layer(stripe));
//!
//! async fn payment(mut tx: DedupeTx, delivery: Delivery) -> Result<StatusCode, StatusCode> {
//!     sqlx::query("insert into payments (event_id) values ($1)")
//!         .bind(delivery.id().as_str())
//!         .execute(&mut *tx)
//!         .await
//!         .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
//!     Ok(StatusCode::OK)
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # The promise
//!
//! The database effects a handler makes through [`DedupeTx`] commit at most once for each
//! delivery id of an endpoint within the retention, and a 2xx leaves only after that
//! commit. Effects outside the database are at-least-once, with a stable id to make them
//! idempotent.
//!
//! # The way of a request
//!
//! ```text
//! request
//!   -> buffer the raw body           bounded in bytes and time
//!   -> verify the signature          over the exact raw bytes, against one or more secrets
//!   -> identify the delivery         id (header, JSON path, body digest), event type
//!   -> claim it                      insert into Postgres inside the request's transaction
//!        already processed  -> 200, the handler never runs
//!        in flight elsewhere -> wait, bounded; then 200, or run it, or 503 + Retry-After
//!        claimed            -> handler, with the transaction as `DedupeTx`
//!                                2xx  -> COMMIT   -> the handler's response
//!                                else -> ROLLBACK -> the handler's response
//! ```
//!
//! [`IdempotentWebhook`] is the layer and has the settings. [`Provider`] says how a
//! provider signs, identifies and redelivers: there are presets for Stripe, GitHub, Shopify,
//! Slack, Linear, Standard Webhooks, Svix and Awardee, and [`Provider::custom`] for any
//! other; [`TenantSecrets`] serves many tenants behind one route. Handlers take [`DedupeTx`]
//! and [`Delivery`]. [`migrate`] makes the tables, [`Retention`] keeps them small. The
//! [`checklist`] goes through what every guide to webhooks asks for.
//!
//! # What handlers should know
//!
//! - Answer 2xx for "done", anything else for "again, please". Do not commit.
//! - Pass SQL errors on. After one the transaction is lost, unless the statement ran in a
//!   savepoint (`tx.begin()`); an answer of 2xx then becomes a 500.
//! - Put a time limit around statements, not around the `begin` or `commit` of a savepoint:
//!   cancelled half-way, the transaction is in doubt, and all that follows is refused.
//! - Keep the [`DedupeTx`] in the handler: one that is moved into a task, or into the body
//!   of the response, is a 500.
//! - The handler runs to its end even if the sender hangs up, within
//!   [`handler_time`](IdempotentWebhook::handler_time).
//! - A deadlock or a serialization failure is an error like any other: pass it on, and the
//!   provider's retry runs the handler again.
//!
//! # What this crate does not do
//!
//! - It does not put deliveries in order. [`DedupeTx::advance`] tells which are stale.
//! - It does not make effects outside the database happen once. Give what you call a
//!   [`Delivery::idempotency_key`].
//! - Where the provider does not sign the id ([`Provider::signs_delivery_id`]), it cannot
//!   tell a replay of a captured request under a fresh id from a new delivery, unless
//!   [`replay_guard`](IdempotentWebhook::replay_guard) is on.
//! - It does not remember for ever: see [`Retention`].
//!
//! # Features
//!
//! - `axum` (default): [`DedupeTx`] and [`Delivery`] as extractors, and axum's own body
//!   limit lifted for bodies that the layer has bounded. Without it the layer is plain
//!   tower; handlers use [`DedupeTx::take`] and find the [`Delivery`] in the request's
//!   extensions.
//! - `ed25519`: the asymmetric signatures of Standard Webhooks and Svix.
//! - `metrics`: the metrics below.
//! - `testing`: signed requests and an assertion, for the tests of applications.
//!
//! # Metrics
//!
//! With the feature `metrics`, on the facade of the crate `metrics`. All have the labels
//! `endpoint` and `provider`, but for the last one.
//!
//! | name | kind | further labels |
//! |---|---|---|
//! | `idempotent_webhook_deliveries_total` | counter | `outcome`: `processed`, `duplicate`, `in-flight`, `rejected`, `failed`, `handshake` |
//! | `idempotent_webhook_rejections_total` | counter | `reason`: `missing_header`, `malformed_header`, `no_match`, `too_old`, `too_new`, `no_secret`, `unusable_secret`, `no_timestamp`, `no_usable_id`, `body_too_large`, `body_too_slow`, `body_broken` |
//! | `idempotent_webhook_claim_seconds` | histogram | |
//! | `idempotent_webhook_handler_seconds` | histogram | |
//! | `idempotent_webhook_commit_seconds` | histogram | |
//! | `idempotent_webhook_in_flight_waiters` | gauge | |
//! | `idempotent_webhook_pruned_rows_total` | counter | `table`: `deliveries`, `bodies`, `subjects`, `failures` |

#![warn(unreachable_pub)]

mod layer;
mod service;
mod process;

mod body;
mod provider;
mod signature;
mod secret;
mod crypto;
mod tenant;
mod source;
mod json_path;
mod delivery;

mod random;
mod memory;
mod recent;
mod in_flight;
mod database;
mod claim;
mod tx;
mod savepoint;
#[cfg(feature = "axum")]
mod extract;
mod recency;
mod panic;
mod after_commit;
mod response;
mod error;
mod failures;
mod report;
mod meter;

mod migrate;
mod retention;
mod forget;
#[cfg(feature = "testing")]
pub mod testing;
pub mod checklist;

pub use after_commit::WorkResult;
pub use delivery::{Delivery, DeliveryId, Handshake, Verified};
pub use forget::{forget, forget_for_tenant};
pub use json_path::{JsonPath, JsonPathError};
pub use layer::IdempotentWebhook;
pub use migrate::migrate;
pub use provider::{CustomProvider, Provider, SignedProvider, VerifyError};
pub use recency::Recency;
pub use retention::{PruneError, Pruned, Retention, RetentionTask, prune};
pub use savepoint::Savepoint;
pub use secret::{BlankSecret, Secret, Secrets};
pub use service::{IdempotentWebhookService, ResponseFuture};
pub use signature::{
    HmacSha256, SignatureError, SignatureScheme, StandardWebhooks, TemplateError, Tolerance,
};
pub use source::{IdentityError, Source};
pub use tenant::{Keys, ResolvedTenant, TenantSecrets};
pub use tx::{DedupeTx, ExtractError};

/// Compiles the examples of the README.
#[cfg(all(doctest, feature = "axum", feature = "testing"))]
#[doc = include_str!("../README.md")]
struct Readme;
