//! Why a subscription cannot be compared.

use std::error::Error;
use std::fmt;

use crate::provider_api::source_error::SourceError;

/// Why a subscription cannot be compared. The error says nothing about the subscription itself.
#[derive(Debug)]
#[non_exhaustive]
pub enum SubscriptionError {
    /// The expected address is not an HTTP URL.
    NotAnAddress,
    /// An expected event type is impossible, for this reason.
    EventType(String),
    /// The provider refused the API key: the key is wrong, has expired, or lacks the right to read webhooks.
    Key(SourceError),
    /// The provider could not be asked. The reason includes the whole chain of errors, without the API key.
    Source(SourceError),
}

impl SubscriptionError {
    /// Whether the error may go away by itself, because the provider is unreachable or has asked to wait. A refused key
    /// does not go away by itself, and neither does an API address that the provider does not know.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Source(error) if !error.is_permanent())
    }
}

impl fmt::Display for SubscriptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnAddress => f.write_str(
                "the address is not an HTTP URL: it must start with https:// or http://, and a host name with letters \
                 other than a to z must be written in ASCII, such as xn--bcher-kva.example",
            ),
            Self::EventType(reason) => f.write_str(reason),
            Self::Key(error) => write!(f, "the provider has refused the API key: {error}"),
            Self::Source(error) => write!(f, "the provider could not be asked: {error}"),
        }
    }
}

impl Error for SubscriptionError {}
