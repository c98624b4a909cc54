//! The guarantees, on a real Postgres. Each test asserts the status and the rows.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails may panic"
)]

mod activity;
mod after_commit;
mod answers;
mod auto_traits;
mod bodies;
mod citus;
mod connections;
mod dashboard;
mod database;
mod extract;
mod failures;
mod forget;
mod hang_up;
mod identity;
mod in_flight;
mod keys;
mod log;
mod metrics;
mod handshake;
mod migrate;
mod mistakes;
mod pgbouncer;
mod preset_answers;
mod preset_keys;
mod preset_replays;
mod readme;
mod reasons;
mod recency;
mod reconcile;
mod recovery;
mod repeats;
mod replay;
mod retention;
mod retention_task;
mod savepoints;
mod signatures;
mod support;
mod tenants;
mod testing_kit;
mod transaction;
