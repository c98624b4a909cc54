//! A database for each test, requests signed as providers sign them, and ways to look at what is
//! left behind.

mod accept;
mod cancelled;
mod citus;
mod database;
mod dump;
mod gate;
mod gauge;
mod logged;
mod network;
mod recovery;
mod request;
mod rows;
mod test_app;

pub use accept::{
    Runs, assert_accepted, keep_accepted, keep_all, keeping_by, keeping_of, outcomes,
    send_in_one_group,
};
pub use cancelled::cancelled_after;
pub(crate) use database::assert_rows;
pub use database::{Database, another};
pub use gate::{Gate, Way, failing_behind_gate, gate, gated, held_back};
pub use gauge::Gauge;
pub use logged::{logged, until_logged};
pub use network::{Link, Network};
pub(crate) use recovery::assert_kept;
pub use recovery::{
    Answered, Failing, Kept, NO_ADVISORY_LOCK, NONE_TAKEN, NOTHING_KEPT, ONE_DEAD,
    ONE_WAITS_FOR_A_LOCK, Process, SOON, due_after, endpoint, insert_due_of, keep, lock,
    longer_than_a_term_and_silence, longer_than_silence, lose_connections, record, recover,
    recover_all, recovery,
};
pub use request::{
    SECRET, acme, github, github_delivery, now, secret, shopify, stripe, stripe_delivery,
    stripe_event, wire,
};
pub use rows::Rows;
pub use test_app::{
    Answer, TestApp, answer, insert_effect, let_pass, send, send_copies, soon, spawn_send,
    until_all_wait, write_effect,
};
