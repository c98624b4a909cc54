//! Work on the tables outside of requests: migrations, retention, and what operators do.

mod endpoint;
mod forget;
mod migrate;
pub(crate) mod retention;

pub use endpoint::Endpoint;
pub use migrate::migrate;
