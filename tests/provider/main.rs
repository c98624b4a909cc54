//! How providers sign and identify what they deliver. Nothing here needs a database.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails may panic"
)]

mod canaries;
mod captures;
mod corpora;
mod event_names;
mod facts;
mod fetched_keys;
mod handshakes;
mod hmac;
mod key_floods;
mod key_lifetimes;
mod properties;
mod signed_content;
mod support;

mod tampering;
mod test_deliveries;
mod text_forms;
mod vectors;
mod verified;
