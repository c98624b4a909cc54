//! Tests of the command `webhook`, run as a process.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails may panic"
)]

mod application;
mod canary;
mod capture;
mod doctor;
mod endpoint;
mod guide;
mod mistakes;
mod programs;
mod record;
mod run;
mod sending;
mod usage;
mod vectors;
mod verify;
