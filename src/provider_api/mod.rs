//! The APIs of providers: what they list of events, and of subscriptions.

#[cfg(feature = "reqwest")]
mod api;
mod error;

#[cfg(feature = "reqwest")]
pub use api::Http;
#[cfg(feature = "reqwest")]
pub(crate) use api::{Api, Authorization, next_page, parse};
pub use error::SourceError;
pub(crate) use error::caught;
