//! How providers sign and identify what they deliver. Nothing here needs a database.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails may panic"
)]

mod fetched_keys;
mod handshakes;
mod hmac;
mod properties;
mod support;
mod table;
mod tampering;
mod test_deliveries;
mod vectors;
