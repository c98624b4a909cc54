//! Work on the tables outside of requests: migrations and retention.

mod migrate;
pub(crate) mod retention;

pub use migrate::migrate;
