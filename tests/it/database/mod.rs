//! Whatever the database is like, and whatever is between it and the layer.

mod citus;
mod configurations;
mod connections;
mod given_up;
mod migrate;
mod outages;
mod pgbouncer;
pub mod plans;
mod silence;
