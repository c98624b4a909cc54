//! The layer: its settings, what they do to a request, and the response. `idempotent_webhook.rs` is the builder. A
//! request enters in `request/service.rs`, is authenticated by `verification/`, and is then attempted by `request/`.
//! `events.rs` contains handlers by event type.

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
