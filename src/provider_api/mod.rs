//! Compares what a provider's API lists with what this application has: the listed events with the deliveries in the
//! database (`reconcile/`), and the listed subscriptions with the event types that the layer handles
//! (`subscriptions/`). `clients/` calls the APIs of the built-in providers. Each provider has a folder or a file.

#[cfg(feature = "reqwest")]
mod clients;
#[cfg(feature = "postgres")]
pub mod reconcile;
pub mod subscriptions;
mod source_error;
