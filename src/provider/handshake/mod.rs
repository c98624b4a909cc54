//! Handshakes: requests by which a provider checks that the endpoint is there.

mod answer;
mod recognize;
mod request;
mod settings;

use std::borrow::Cow;

use super::source::Source;

pub use answer::Handshake;
pub(super) use recognize::Handshakes;
pub use request::HandshakeRequest;

/// How a handshake that is signed like a delivery, but has no id, is recognized and answered.
#[derive(Clone, Debug)]
pub(super) struct HandshakeRule {
    /// The event type of an authentic request without a delivery id.
    pub(super) event_type: Cow<'static, str>,
    /// The text that the provider wants back.
    pub(super) challenge: Source,
}
