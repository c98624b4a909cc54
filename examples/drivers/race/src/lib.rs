//! Helpers for the tests of the guide's programs: processes that are killed, and a sender that does not give up.

mod postgres;
mod process;
mod race;
mod sender;

pub use postgres::Database;
pub use process::Process;
pub use race::race;
pub use sender::{Sender, delivery};

/// The secret that the programs verify with.
pub const SECRET: &str = "whsec_test";
