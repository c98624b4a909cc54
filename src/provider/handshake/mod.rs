//! Handshakes: requests with which a provider checks that the endpoint exists.

mod answer;
mod recognize;
mod request;
mod settings;

use std::borrow::Cow;

use super::source::Source;

pub use answer::Handshake;
pub(super) use recognize::Handshakes;
pub use request::HandshakeRequest;

/// How to recognize and answer a handshake that is signed like a delivery, but has no id.
#[derive(Clone, Debug)]
pub(super) struct HandshakeRule {
    /// The event type of an authentic request without a delivery id.
    pub(super) event_type: Cow<'static, str>,
    /// The text that the provider wants back.
    pub(super) challenge: Source,
}
