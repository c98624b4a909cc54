//! All kinds of databases, and everything that can be between them and the layer.

mod citus;
mod configurations;
mod connections;
mod environment;
mod given_up;
mod migrate;
mod outages;
mod pgbouncer;
pub mod plans;
mod silence;
