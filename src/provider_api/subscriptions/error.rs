//! Why a subscription cannot be compared.

use std::error::Error;
use std::fmt;

use crate::provider_api::source_error::SourceError;

/// Why a subscription cannot be compared. It says nothing about the subscription.
#[derive(Debug)]
#[non_exhaustive]
pub enum SubscriptionError {
    /// The address that is expected is not an HTTP URL.
    NotAnAddress,
    /// An expected type is impossible, for this reason.
    EventType(String),
    /// The provider has refused the API key: it is wrong, has expired or lacks the right to read webhooks.
    Key(SourceError),
    /// The provider could not be asked. The reason is the whole chain of errors, without the API key.
    Source(SourceError),
}

impl SubscriptionError {
    /// Whether it may pass by itself: the provider is away, or has asked to wait. A refused key, or an address that the
    /// provider does not know, does not.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Source(error) if !error.is_permanent())
    }
}

impl fmt::Display for SubscriptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnAddress => f.write_str(
                "the address is not an HTTP URL: it begins with https:// or http://, and a name with other letters than \
                 a to z is written in ASCII, such as xn--bcher-kva.example",
            ),
            Self::EventType(reason) => f.write_str(reason),
            Self::Key(error) => write!(f, "the provider has refused the API key: {error}"),
            Self::Source(error) => write!(f, "the provider could not be asked: {error}"),
        }
    }
}

impl Error for SubscriptionError {}
