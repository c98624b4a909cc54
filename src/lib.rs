//! A tower layer for axum that makes webhook endpoints idempotent. It verifies a delivery, claims
//! its id in Postgres, and lets the handler write in the same transaction. The claim and the
//! writes commit together before the response leaves, or not at all.
//!
//! ```no_run
//! use axum::{Json, Router, http::StatusCode, routing::post};
//! use idempotent_webhook::{DedupeTx, Events, HandlerError, IdempotentWebhook, Secret, presets};
//!
//! # async fn main_(pool: sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
//! idempotent_webhook::migrate(&pool).await?;
//! let secret = Secret::new(std::env::var("STRIPE_WEBHOOK_SECRET")?)?;
//! let stripe = IdempotentWebhook::new(pool, "billing", presets::stripe(secret));
//! let events = Events::new().on("payment_intent.succeeded", paid).ignore_others();
//! let app: Router = Router::new().route("/webhooks/stripe", post(events.layer(stripe)));
//!
//! # #[derive(serde::Deserialize)]
//! # struct Paid { id: String }
//! async fn paid(mut tx: DedupeTx, Json(event): Json<Paid>) -> Result<StatusCode, HandlerError> {
//!     sqlx::query("insert into payments (event_id) values ($1)")
//!         .bind(event.id)
//!         .execute(&mut *tx)
//!         .await?;
//!     Ok(StatusCode::OK)
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # The promise
//!
#![doc = include_str!("documentation/promise.md")]
//!
//! [`documentation::guarantees`] explains each part of the promise.
//!
//! # The lifecycle of a request
//!
//! ```text
//! request
//!   -> buffer the raw body           bounded in bytes and time
//!   -> verify the signature          over the exact raw bytes, against one or more secrets
//!   -> look at the event type        no handler for it -> 200, nothing is stored
//!   -> identify the delivery         id (header, JSON path, body digest)
//!   -> claim it                      insert into Postgres inside the request's transaction
//!        already processed  -> 200, the handler does not run
//!        in flight          -> wait, bounded; then 200, or run it, or 503 + Retry-After
//!        claimed            -> handler, with the transaction as `DedupeTx`
//!                                2xx  -> COMMIT   -> the handler's response
//!                                else -> ROLLBACK -> the handler's response
//! ```
//!
//! # Where to start
//!
//! - [`documentation`] is the guide, with a page for each question. [`documentation::handling`] is about handlers.
//! - [`IdempotentWebhook`] is the layer, with its settings. Handlers take [`DedupeTx`] and [`Delivery`] as extractors.
//!   A handler that calls an API before it writes takes [`LateClaim`]. `Events` gives each event type its own handler.
//! - Handlers that use [a driver other than sqlx](documentation::drivers) claim through a SQL function.
//!   [`VerifiedWebhook`] is a layer that only verifies.
//! - A [`Provider`] describes how a provider signs, identifies and retries deliveries. Use one of the [`presets`], or
//!   describe your own with [`Provider::custom`]. [`TenantSecrets`] serves many tenants behind one route.
//! - [`migrate`] creates the tables, and [`Retention`] keeps them small.
//! - [`Keep`] chooses which deliveries a layer keeps (stores with their requests), and [`Recovery`] runs them again.
//!   [`Recovery::rehearse`] tries kept deliveries with a new version of the application. [`Reconcile`] finds deliveries
//!   that never arrived.
//! - [`Endpoint`] is for operators' tools. The module `dashboard` is such a tool.
//! - [llms.txt](https://docs.rs/crate/idempotent-webhook/latest/source/llms.txt) is one page for programs that write
//!   code.
//!
//! # What this crate does not do
//!
//! - It does not put deliveries in order. [`DedupeTx::advance`] detects stale deliveries, and
//!   [`serialize_by`](IdempotentWebhook::serialize_by) keeps two deliveries about one object from
//!   running at the same time.
//! - It does not make effects outside the database happen only once. Pass a
//!   [`Delivery::idempotency_key`] to the APIs that a handler calls.
//! - If the provider does not sign the delivery id ([`Provider::signs_delivery_id`]), an attacker
//!   can replay a captured request under a fresh id. The layer then takes the request for a new
//!   delivery, unless [`replay_guard`](IdempotentWebhook::replay_guard) is on.
//! - It does not remember deliveries forever: see [`Retention`].
//!
//! # Features
//!
//! Most presets verify HMAC-SHA256 signatures and need no feature. The column *crates* shows how many crates a feature
//! adds to an application that already has this crate, axum, and sqlx with rustls. (This crate adds only itself to axum
//! and sqlx.) A crate in two versions counts twice.
//!
//! Without `postgres`, sqlx is not in the dependency tree. [`VerifiedWebhook`] still verifies on any tower stack, and
//! [`Provider::verify`] works without tower.
//!
//! | feature | adds | presets | crates |
//! |---|---|---|---|
//! | `axum` (default) | [`DedupeTx`] and [`Delivery`] as extractors. It also disables axum's own body limit for bodies that the layer has limited. Without this feature, the layer is plain tower: handlers call [`DedupeTx::take`] and find the [`Delivery`] in the request's extensions |  | 0 |
//! | `postgres` (default) | [`IdempotentWebhook`] and everything that is built on it. It needs Postgres and sqlx |  | 0 |
//! | `all-presets` | `ed25519`, `md5`, `p256`, `rsa`, `sha1` and `x509` | all | 47 |
//! | `ed25519` | the algorithm, also for schemes of your own | `discord`, `fal`, `telnyx`, and `standard-webhooks` with asymmetric keys | 5 |
//! | `md5` | the algorithm, as for `ed25519` | `patreon` | 0 |
//! | `p256` | the algorithm, as for `ed25519` | `circle`, `github-secret-scanning`, `plaid`, `sendgrid`, and together with `sha1` also `ebay` | 19 |
//! | `rsa` | the algorithm, as for `ed25519` | `fireblocks`, `google-pubsub`, `paypal`, `wise`, `wix` | 19 |
//! | `sha1` | the algorithm, as for `ed25519` | `braintree`, `cloudinary`, `help-scout`, `intercom`, `mandrill`, `plivo`, `segment`, `trello`, `twilio`, `vercel`, and together with `p256` also `ebay`; `websub` for YouTube | 1 |
//! | `x509` | certificates; it turns on `p256`, `rsa` and `sha1` | `apple-app-store`, `aws-sns`, and `paypal` through its certificates | 43 |
//! | `dashboard` | a router with pages for operators: what arrives, what fails, and actions to fix it |  | 3 |
//! | `metrics` | the metrics below |  | 3 |
//! | `reqwest` | the event lists of Stripe, GitHub, Paddle, WorkOS and Chargebee, for [`Reconcile`]; the [`subscriptions`] of Stripe, GitHub, Shopify, Paddle and WorkOS; and a client that fetches the keys of providers that rotate them ([`provider::keys`]). An event list of your own ([`reconcile::EventSource`]) or a key client of your own does not need this feature. It brings in `aws-lc-rs`, a second crypto library next to sqlx's `ring` |  | 14 |
//! | `sea-orm` | [`DedupeTx`] as a SeaORM 2 connection: `DedupeTx::sea_orm`. The crates are SeaORM and its dependencies |  | 26 |
//! | `testing` | for the tests of applications: signed requests, captured requests and an assertion |  | 0 |
//!
//! # Metrics
//!
//! With the feature `metrics`, these metrics are recorded through the facade of the crate `metrics`. Install the
//! recorder before you build the layers, so that it gets the descriptions, and each counter of a layer starts at zero.
//! Otherwise, a counter first appears with its first event, and a query for its increase misses that event. All metrics
//! except the last five have the labels `endpoint` and `provider`.
//!
//! | name | kind | further labels |
//! |---|---|---|
//! | `idempotent_webhook_deliveries_total` | counter | `outcome`: `processed`, `duplicate`, `in-flight`, `rejected`, `failed`, `kept`, `discarded`, `accepted`, `handshake`, `ignored`, `verified` |
//! | `idempotent_webhook_rejections_total` | counter | `reason`: `method_not_allowed`, `missing_header`, `malformed_header`, `malformed_body`, `no_public_url`, `no_match`, `other_algorithm`, `feature_off`, `key_not_fetched`, `unknown_key`, `certificate`, `not_for_us`, `too_old`, `too_new`, `no_tenant`, `unknown_tenant`, `unusable_secret`, `no_timestamp`, `no_usable_id`, `body_too_large`, `body_too_slow`, `body_broken` |
//! | `idempotent_webhook_tenant_requests_total` | counter | `tenant`, and `result`: `authentic`, `rejected`. Only [tenants](TenantSecrets) that the lookup knows; a tenant is counted from the first of its requests that this process rejects. A hundred tenants have their name as the label, and all others share `*` |
//! | `idempotent_webhook_verified_by_secret_total` | counter | `secret`: the position of the secret that verified a delivery, `0` to `9`, and `*` for later positions. Only with [several](Secrets) secrets |
//! | `idempotent_webhook_other_version_total` | counter | deliveries whose payload has a version that is not [expected](Provider::expect_version), or a [mode](Provider::expect_livemode) that is not expected |
//! | `idempotent_webhook_before_claim_seconds` | histogram | from the call of a handler to its [late claim](LateClaim::begin) |
//! | `idempotent_webhook_claim_seconds` | histogram | |
//! | `idempotent_webhook_handler_seconds` | histogram | |
//! | `idempotent_webhook_commit_seconds` | histogram | |
//! | `idempotent_webhook_sender_wait_seconds` | histogram | from the time in the signature until the answer, or until the sender hangs up: [what it includes](documentation::operating#metrics-and-alerts) |
//! | `idempotent_webhook_response_deadline_seconds` | gauge | [how long the provider waits](Provider::response_deadline), if that is published or set |
//! | `idempotent_webhook_in_flight_waiters` | gauge | |
//! | `idempotent_webhook_last_authentic_timestamp_seconds` | gauge | Unix time of the last authentic request. With [`expect_every`](IdempotentWebhook::expect_every), requests to all processes count, and the value is updated every 30 seconds |
//! | `idempotent_webhook_expected_every_seconds` | gauge | the time of [`expect_every`](IdempotentWebhook::expect_every), if it is set |
//! | `idempotent_webhook_event_types` | gauge | `state`: `new`, `stopped`. How many [event types](documentation::operating#event-types) are new or have stopped, counting at most 11 new types; set every 30 seconds by each process whose layer has a table of event types |
//! | `idempotent_webhook_recovery_attempts_total` | counter | `outcome`: the values above, and `unhandled` if the attempt did not reach its layer. Recovery attempts do not count as requests |
//! | `idempotent_webhook_dead_total` | counter | |
//! | `idempotent_webhook_missed_total` | counter | deliveries that never arrived and that [`Reconcile`] found |
//! | `idempotent_webhook_reconciliation_failures_total` | counter | rounds of [`Reconcile`] that failed, left something out, or followed a gap |
//! | `idempotent_webhook_subscription_differences` | gauge | differences between the provider's subscription and the layer, from the last comparison that any process made with [`Subscriptions`](subscriptions::Subscriptions) |
//! | `idempotent_webhook_oldest_due_seconds` | gauge | only `endpoint`: how long the oldest due delivery has been due, 0 if none is; set by each process with [`Recovery`] |
//! | `idempotent_webhook_failing_deliveries` | gauge | only `endpoint`, and `state`: `due`, `dead`, `recorded`. Deliveries that have failed and are waiting. A count stops at 10,000 divided by the number of endpoints in the process, but never below 100; set every 30 seconds by each process that has spawned [`Recovery`] |
//! | `idempotent_webhook_unserved_deliveries` | gauge | only `endpoint`: due deliveries that no process recovers, counted up to 10,000; set every 30 seconds by each process that has spawned [`Recovery`], from the first such delivery on |
//! | `idempotent_webhook_other_environment` | gauge | only `database`: 1 if the database of this name belongs to another [environment](Recovery::environment) than this process, and 0 otherwise; set every 30 seconds by each process that has spawned [`Recovery`] |
//! | `idempotent_webhook_pruned_rows_total` | counter | only `table`: `deliveries`, `subjects`, `kept_deliveries`, `discarded` |

#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(unreachable_pub)]
// Items that only the Postgres parts use stand next to the others, and so do links to those parts.
#![cfg_attr(
    not(feature = "postgres"),
    allow(dead_code, unused_imports, rustdoc::broken_intra_doc_links)
)]

// Each module uses only modules below it, which `tests/it/guide/rooms.rs` checks.
#[cfg(feature = "postgres")]
pub mod documentation;

// Outside of requests.
#[cfg(feature = "dashboard")]
pub mod dashboard;
#[cfg(feature = "testing")]
pub mod testing;
#[cfg(feature = "postgres")]
mod maintenance;
mod provider_api;

// In the order in which a request passes through them.
mod layer;
#[cfg(feature = "postgres")]
pub mod recovery;
#[cfg(feature = "postgres")]
mod activity;
#[cfg(feature = "postgres")]
mod transaction;
mod metrics;
pub mod presets;
pub mod provider;
mod tasks_and_errors;

#[cfg(feature = "axum")]
pub use layer::events::{EventHandlers, Events, EventsLayer};
pub use layer::verification::VerifiedWebhook;
pub use metrics::outcome::{OUTCOME_HEADER, Outcome};
pub use provider::definition::Provider;
pub use provider::delivery::{Delivery, DeliveryId};
pub use provider::json_path::JsonPath;
pub use provider::secret::{Secret, Secrets};
pub use provider::source::Source;
pub use provider::tenant::TenantSecrets;
#[cfg(feature = "postgres")]
pub use provider_api::reconcile;
pub use provider_api::subscriptions;
pub use tasks_and_errors::handler_error::HandlerError;
#[cfg(feature = "sea-orm")]
pub use transaction::{SeaOrmSavepoint, SeaOrmTx};
#[cfg(feature = "postgres")]
pub use {
    layer::idempotent_webhook::IdempotentWebhook,
    maintenance::migrate,
    maintenance::retention::{Retention, prune},
    provider_api::reconcile::settings::Reconcile,
    recovery::keep_settings::Keep,
    recovery::operator::Endpoint,
    recovery::task::Recovery,
    transaction::{BeginError, DedupeTx, LateClaim, Recency, Savepoint},
};

/// What [`Retention`] and [`prune`] return.
#[cfg(feature = "postgres")]
pub mod retention {
    pub use crate::maintenance::retention::{PruneError, Pruned, RetentionTask};
}

/// The types behind the layer and its extractors. Applications rarely name them.
pub mod service {
    #[cfg(feature = "postgres")]
    pub use crate::layer::request::IdempotentWebhookService;
    pub use crate::layer::verification::{ResponseFuture, VerifiedWebhookService};
    pub use crate::tasks_and_errors::extract_error::ExtractError;
    #[cfg(feature = "postgres")]
    pub use crate::transaction::WorkResult;
}

/// Compiles the examples of the README.
#[cfg(all(doctest, feature = "dashboard", feature = "testing"))]
#[doc = include_str!("../README.md")]
struct Readme;

/// Compiles the examples of the page for programs.
#[cfg(all(doctest, feature = "dashboard", feature = "testing"))]
#[doc = include_str!("../llms.txt")]
struct PageForPrograms;
