//! Tests of the guarantees, on a real Postgres. Each test asserts the status and the rows.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails may panic"
)]

mod application;
mod claim;
mod dashboard;
mod database;
mod events;
mod guide;
mod keys;
mod late_claim;
mod operation;
mod provider;
mod reconcile;
mod recovery;
mod request;
mod serialized;
mod subscriptions;
mod support;
mod transaction;
