//! What SeaORM does in the transaction of a claim, on a real Postgres.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails may panic"
)]

mod active_model_ex;
mod application;
mod entity;
mod errors;
mod queries;
mod savepoints;
mod transaction;

use entity::payment;
use sea_orm::Set;

fn payment(event_id: &str) -> payment::ActiveModel {
    payment::ActiveModel {
        event_id: Set(event_id.to_owned()),
        note: Set(None),
    }
}
