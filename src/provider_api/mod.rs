//! Compares what a provider's API lists with this side: its events with the deliveries in the database (`reconcile/`),
//! and its subscriptions with the event types that the layer handles (`subscriptions/`). `clients/` calls the APIs of
//! the built-in providers; each has a folder or a file.

#[cfg(feature = "reqwest")]
mod clients;
#[cfg(feature = "postgres")]
pub mod reconcile;
pub mod subscriptions;
mod source_error;
