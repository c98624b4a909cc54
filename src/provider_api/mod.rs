//! What the API of a provider says, held against what is here: its list of events (`reconcile/`), and its subscriptions
//! (`subscriptions/`). `clients/` asks the providers that are built in, a folder or a file each.

#[cfg(feature = "reqwest")]
mod clients;
#[cfg(feature = "postgres")]
pub mod reconcile;
pub mod subscriptions;
mod source_error;
