//! A database for each test, requests signed as providers sign them, and a look at what
//! is left behind.

#[path = "../../../examples/throwaway_postgres/mod.rs"]
pub mod throwaway_postgres;

mod database;
mod request;
mod rows;
mod webhook;

pub use database::Database;
pub(crate) use database::assert_rows;
pub use request::{SECRET, acme, github, mac, now, secret, shopify, stripe, stripe_event, wire};
pub use rows::Rows;
pub use webhook::{Answer, Webhook, answer, gated, ok, record, send, send_copies, sending, soon};
