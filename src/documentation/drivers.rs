//! How is it used with Diesel, tokio-postgres, sqlx 0.8, actix-web, AWS Lambda or another language?
//!
//! The layer's transaction is one of sqlx 0.9. Other drivers have transactions of their own, and claim the delivery in
//! them by a function in SQL.
//!
//! # Which way
//!
//! | you have | the way | what there is |
//! |---|---|---|
//! | sqlx 0.9 | [`IdempotentWebhook`], and the handler writes through [`DedupeTx`] | everything |
//! | SeaORM 2 | the same, with the feature `sea-orm`: [`DedupeTx::sea_orm`] | everything |
//! | Diesel, tokio-postgres, sqlx 0.8, SeaORM 1, with axum or tower | [`IdempotentWebhook`] with [`late_claim`], the function, and [`LateClaim::committed`] | everything but [this](#what-it-does-not-do). A pool of sqlx 0.9 is beside yours |
//! | the same, and you do not want sqlx 0.9 | [`VerifiedWebhook`] and the function | verification and the claim |
//! | actix-web and others | [`Provider::verify`] and the function | verification and the claim |
//! | another language | its own verification, and the function | the claim |
//!
//! All of these can be in use for one database, and for one endpoint: they take the same lock and write the same row.
//! [`Retention`] and [`Endpoint`] see no difference, nor does the dashboard, but for the activity, which layers count. Only [`IdempotentWebhook`] tells
//! `Retention` how long its provider may still send a delivery. Without that layer, ids are kept for 32 days at least:
//! for a provider whose window in the [table of providers](super::provider_table) is longer, set an age above it.
//!
//! The programs below listen on one machine, and connect without TLS. Each of them, but that of Lambda, is raced in the
//! tests: two processes get each event at the same time, and are killed again and again.
//!
//! # The claim
//!
//! [`migrate`] creates the function:
//!
//! ```text
//! idempotent_webhook.claim(endpoint text, tenant text, delivery_id text, event_type text) returns boolean
//! ```
//!
//! | argument | in Rust | |
//! |---|---|---|
//! | `endpoint` | [`Delivery::endpoint`] | the namespace of the ids, with 1 to 255 bytes |
//! | `tenant` | [`Delivery::key_tenant`] | empty, unless tenants have [separate ids] |
//! | `delivery_id` | [`Delivery::id`] | 1 to 255 bytes |
//! | `event_type` | [`Delivery::event_type`] | for operators, may be null |
//!
//! It is called first in a transaction, and what the event does is written in the same one:
//!
//! ```sql
//! begin;
//! set local lock_timeout = '5s';
//! set local idle_in_transaction_session_timeout = '30s';
//! select idempotent_webhook.claim('billing', '', 'evt_1Qx', 'invoice.paid');
//! -- If it is true:
//! insert into payments (event_id, amount) values ('evt_1Qx', 4200);
//! commit;
//! ```
//!
//! | what happens | what to answer |
//! |---|---|
//! | it returns `true`, and the commit succeeds | 2xx, **after** the commit |
//! | it returns `false`: the delivery was processed before | roll back, and 200 |
//! | it fails with `55P03`: another attempt was still at it after `lock_timeout` | 503 |
//! | it fails with `22023`: the id cannot be a key | 400 |
//! | anything else fails, or the connection is lost in the commit | 500. If it was committed, the next attempt gets `false` |
//!
//! - **In an explicit transaction.** Called by itself, in autocommit, it commits at once. The event would count as
//!   processed, and never be.
//! - **First.** What the transaction writes before the claim waits with it. What it has read before may be old.
//! - **The wait.** It waits while another attempt is at the delivery. Without `lock_timeout`, that is without end. Set
//!   it below the time after which the provider gives up ([`Provider::response_deadline`]).
//! - **A frozen process** holds its claim until Postgres notices. `idle_in_transaction_session_timeout` ends it.
//! - **Isolation.** In `repeatable read` and `serializable`, who has waited gets `40001` in place of `false`, and so may
//!   another one at the first claim of an endpoint. Run the transaction again.
//! - **Rights.** It runs with the rights of the caller, who needs those of
//!   [the guide](super::database#tables-and-rights). Everyone may execute a function, unless your database has taken
//!   that away: `grant execute on all functions in schema idempotent_webhook to app`.
//! - **PgBouncer** in transaction mode works: lock, row and `set local` are of the transaction. It refuses what is set at
//!   the start of a connection (`options`), or ignores it (`ignore_startup_parameters`): use `set local`, or
//!   `alter role app set lock_timeout = '5s'`. Drivers that prepare statements need
//!   [its setting](super::database#pgbouncer).
//! - **Citus.** The function is on the coordinator, so call it there. Until the first claim of an endpoint has committed,
//!   layers of that endpoint wait for it: it writes to a reference table.
//!   [What holds for the layer](super::database#citus) holds for your tables.
//!
//! What is kept of the delivery ends with the claim: the row is deleted, or archived.
//!
//! ## Order
//!
//! `idempotent_webhook.advance(endpoint text, tenant text, subject text, version bigint) returns integer` is
//! [`DedupeTx::advance`] for the same transaction: 1 if the version is newer than all that were seen, or the first; 0 if
//! it is the same; -1 if it is older.
//!
//! ## What it does not do
//!
//! It claims what an operator has discarded or forgotten while the handler ran, and what another attempt has taken over.
//! [`LateClaim::begin`] refuses that. One effect it is in any case.
//!
//! [`replay_guard`], `compare_bodies` and [`serialize_by`] are part of the layer's own claim. What the function claims has
//! no digest of the body, and takes no lock of the object. `select pg_advisory_xact_lock(..)` with a key of your own
//! does the latter. Nor is the [version](crate::IdempotentWebhook::version) of the application recorded, by which
//! [`Filter::processed_by`](crate::recovery::Filter::processed_by) finds what it has processed.
//!
//! # tokio-postgres
//!
//! ```toml
//! axum = "0.8"
//! deadpool-postgres = "0.14"
//! idempotent-webhook = "0.1"
//! serde = { version = "1", features = ["derive"] }
//! sqlx = { version = "0.9", default-features = false, features = ["postgres", "runtime-tokio"] }
//! tokio = { version = "1", features = ["macros", "net", "rt-multi-thread"] }
//! tokio-postgres = "0.7"
//! ```
//!
#![doc = concat!("```ignore\n", include_str!("drivers/tokio_postgres.rs"), "```\n")]
//!
//! - `commit` returns `Ok` although Postgres has rolled back, if a statement before had failed and its error was
//!   swallowed. Any statement before the commit finds that.
//! - The handler is dropped when Stripe hangs up. Its transaction is rolled back then, and Stripe sends the event again.
//! - sqlx is only there for [`migrate`]. If that is a program of its own, a step of the deploy, the application needs no
//!   sqlx: `idempotent-webhook = { version = "0.1", default-features = false, features = ["axum"] }`.
//!
//! # Diesel
//!
//! This one has recovery and an archive, and so the dashboard and [`Reconcile`], too.
//!
//! ```toml
//! axum = "0.8"
//! diesel = { version = "2.3", default-features = false }
//! diesel-async = { version = "0.9", features = ["deadpool", "postgres"] }
//! idempotent-webhook = "0.1"
//! serde = { version = "1", features = ["derive"] }
//! sqlx = { version = "0.9", default-features = false, features = ["postgres", "runtime-tokio"] }
//! tokio = { version = "1", features = ["macros", "net", "rt-multi-thread"] }
//! ```
//!
#![doc = concat!("```ignore\n", include_str!("drivers/diesel.rs"), "```\n")]
//!
//! - `transaction` returns `Ok` after a swallowed error, as tokio-postgres does. [`LateClaim::committed`] makes the layer
//!   look for the claim before it answers, and the event is not lost.
//! - **200 without `committed` is for `false` alone.** The layer claims the delivery then, as one whose handler had
//!   nothing to do. Return the errors of the transaction.
//! - A handler that panics, or is ended by [`handler_timeout`], leaves its transaction open in the pool of Diesel. The
//!   claim lasts until the pool looks at that connection, or for `idle_in_transaction_session_timeout`: keep that low.
//! - Diesel does not tell the code `55P03`. So a wait that is over is answered with 500, and is a failed attempt.
//! - An event that is [reprocessed](super::recovery#the-archive) meets its payment: delete that first, or insert with
//!   `on_conflict_do_nothing`.
//! - Without diesel-async, the same transaction runs in `tokio::task::spawn_blocking`. It goes on when the layer has
//!   answered for its [`handler_timeout`], and the next attempt finds the claim.
//!
//! In a test, [`assert_idempotent`](crate::testing::assert_idempotent) needs a layer with
//! [`allow_unused_transaction`](crate::IdempotentWebhook::allow_unused_transaction), since what the handler has committed
//! cannot be rolled back. The database of `#[sqlx::test]` is one for Diesel by its URL, without the parameters of sqlx:
//!
//! ```
//! use sqlx::{ConnectOptions, PgPool};
//!
//! /// For `AsyncDieselConnectionManager::new`.
//! fn url_of(pool: &PgPool) -> String {
//!     let mut url = pool.connect_options().to_url_lossy();
//!     url.set_query(None);
//!     url.into()
//! }
//! ```
//!
//! # sqlx 0.8
//!
//! Both versions of sqlx can be in one application, with a pool each.
//!
//! ```toml
//! axum = "0.8"
//! idempotent-webhook = "0.1"
//! serde = { version = "1", features = ["derive"] }
//! sqlx = { version = "0.8", default-features = false, features = ["postgres", "runtime-tokio"] }
//! sqlx_09 = { package = "sqlx", version = "0.9", default-features = false, features = ["postgres", "runtime-tokio"] }
//! tokio = { version = "1", features = ["macros", "net", "rt-multi-thread"] }
//! ```
//!
#![doc = concat!("```ignore\n", include_str!("drivers/sqlx_08.rs"), "```\n")]
//!
//! - The compiler says of a type of the other version that two versions of the crate are in the graph. The layer and
//!   [`migrate`] take the pool of 0.9.
//! - A [`DeliveryId`](crate::DeliveryId) is bound as a text: `delivery.id().as_str()`.
//! - SeaORM 1 is made with sqlx 0.8. Its transaction can call the function as well.
//!
//! # SeaORM 2
//!
//! ```toml
//! axum = "0.8"
//! idempotent-webhook = { version = "0.1", features = ["sea-orm"] }
//! sea-orm = { version = "2", features = ["runtime-tokio", "sqlx-postgres"] }
//! tokio = { version = "1", features = ["macros", "net", "rt-multi-thread"] }
//! ```
//!
#![doc = concat!("```ignore\n", include_str!("drivers/sea_orm.rs"), "```\n")]
//!
//! # actix-web
//!
//! ```toml
//! actix-web = { version = "4", default-features = false, features = ["macros"] }
//! http = "1"
//! idempotent-webhook = { version = "0.1", default-features = false, features = ["postgres"] }
//! serde_json = "1"
//! sqlx = { version = "0.9", default-features = false, features = ["postgres", "runtime-tokio"] }
//! ```
//!
#![doc = concat!("```ignore\n", include_str!("drivers/actix.rs"), "```\n")]
//!
//! - The body is verified to the byte, so the handler takes `Bytes`, and no `Json`. actix-web takes 256 KiB of it, unless
//!   `PayloadConfig` says otherwise.
//! - A provider that signs the URL needs its [`public_url`]. One whose keys are fetched needs
//!   [`verify_fetching`], and 503 for the error `KeyNotFetched`.
//! - What a provider insists on ([`success_status`] and [`failure_status`]) is for the handler to answer.
//!
//! # AWS Lambda
//!
//! The router runs as it is. After the response the process is frozen, and nothing runs in the background:
//!
//! | not on Lambda | instead |
//! |---|---|
//! | [`Recovery::spawn`] | [`Recovery::elsewhere`], and `spawn` in a process with the same route that is not frozen, such as a small container |
//! | [`accept_first`] | the handler within the timeout of the function, or a job that is inserted through `DedupeTx` |
//! | [`DedupeTx::after_commit`] | a job |
//! | [`Retention`] and [`Reconcile`] with `spawn` | [`prune`] in a function that a schedule calls. `Reconcile` where recovery runs |
//! | activity, the gauges of `metrics` | the log |
//!
//! ```toml
//! axum = "0.8"
//! idempotent-webhook = "0.1"
//! lambda_http = { version = "1.3", default-features = false, features = ["apigw_http", "tracing"] }
//! serde = { version = "1", features = ["derive"] }
//! sqlx = { version = "0.9", default-features = false, features = ["postgres", "runtime-tokio", "tls-rustls"] }
//! tokio = { version = "1", features = ["macros"] }
//! ```
//!
#![doc = concat!("```ignore\n", include_str!("drivers/lambda.rs"), "```\n")]
//!
//! - Instances that start at the same time have a pool each. A pooler in transaction mode keeps them below
//!   `max_connections`.
//! - A function that is ended by its timeout leaves a transaction. The layer's claim limits how long it may be idle.
//! - A stage of a REST API is part of the path: set `AWS_LAMBDA_HTTP_IGNORE_STAGE_IN_PATH=true`.
//!
//! # Moving in
//!
//! [`moving_in`](super::moving_in) takes over the ids of a table of your own.
//!
//! [`accept_first`]: crate::Keep::accept_first
//! [`DedupeTx`]: crate::DedupeTx
//! [`DedupeTx::advance`]: crate::DedupeTx::advance
//! [`DedupeTx::after_commit`]: crate::DedupeTx::after_commit
//! [`DedupeTx::sea_orm`]: crate::DedupeTx::sea_orm
//! [`Delivery::endpoint`]: crate::Delivery::endpoint
//! [`Delivery::event_type`]: crate::Delivery::event_type
//! [`Delivery::id`]: crate::Delivery::id
//! [`Delivery::key_tenant`]: crate::Delivery::key_tenant
//! [`Endpoint`]: crate::Endpoint
//! [`failure_status`]: crate::Provider::failure_status
//! [`handler_timeout`]: crate::IdempotentWebhook::handler_timeout
//! [`IdempotentWebhook`]: crate::IdempotentWebhook
//! [`late_claim`]: crate::IdempotentWebhook::late_claim
//! [`LateClaim::begin`]: crate::LateClaim::begin
//! [`LateClaim::committed`]: crate::LateClaim::committed
//! [`migrate`]: crate::migrate
//! [`Provider::response_deadline`]: crate::Provider::response_deadline
//! [`Provider::verify`]: crate::Provider::verify
//! [`prune`]: crate::prune
//! [`public_url`]: crate::Provider::public_url
//! [`Reconcile`]: crate::Reconcile
//! [`Recovery::elsewhere`]: crate::Recovery::elsewhere
//! [`Recovery::spawn`]: crate::Recovery::spawn
//! [`replay_guard`]: crate::IdempotentWebhook::replay_guard
//! [`Retention`]: crate::Retention
//! [separate ids]: crate::TenantSecrets::separate_ids
//! [`serialize_by`]: crate::IdempotentWebhook::serialize_by
//! [`success_status`]: crate::Provider::success_status
//! [`VerifiedWebhook`]: crate::VerifiedWebhook
//! [`verify_fetching`]: crate::Provider::verify_fetching
