//! Code that needs nothing else of the crate: background tasks and how they are asked to stop, errors and panics and
//! how they are logged, and random numbers.

#[cfg(feature = "postgres")]
pub(crate) mod background;
pub(crate) mod error_chain;
pub(crate) mod extract_error;
pub(crate) mod handler_error;
pub(crate) mod log_once;
pub(crate) mod panic;
#[cfg(feature = "postgres")]
pub(crate) mod progress;
pub(crate) mod random;
#[cfg(feature = "postgres")]
pub(crate) mod sqlx_error;
#[cfg(feature = "postgres")]
pub(crate) mod stop_signal;
