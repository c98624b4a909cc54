//! What the programs of the guide are tested with: processes that are killed, and a sender that does not give up.

mod postgres;
mod process;
mod race;
mod sender;

pub use postgres::Database;
pub use process::Process;
pub use race::race;
pub use sender::{Sender, delivery};

/// With which the programs verify.
pub const SECRET: &str = "whsec_test";
