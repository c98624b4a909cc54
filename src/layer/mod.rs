//! The layer: its settings, how it handles a request, and the response. `idempotent_webhook.rs` is the builder. A
//! request enters in `request/service.rs`. `verification/` authenticates it, and `request/` makes the attempt at its
//! delivery. `events.rs` contains handlers by event type.

#[cfg(feature = "axum")]
pub(crate) mod events;
#[cfg(feature = "postgres")]
pub(crate) mod idempotent_webhook;
#[cfg(feature = "postgres")]
pub(crate) mod settings;
#[cfg(feature = "postgres")]
pub(crate) mod request;
pub(crate) mod verification;
#[cfg(feature = "axum")]
mod extract;
mod route;
