//! Why a subscription cannot be compared.

use std::error::Error;
use std::fmt;

use crate::source_error::SourceError;

/// Why a subscription cannot be compared. It says nothing of the subscription.
#[derive(Debug)]
#[non_exhaustive]
pub enum SubscriptionError {
    /// The address that is expected is none of HTTP.
    NotAnAddress,
    /// A type that is expected cannot be: why.
    EventType(String),
    /// The provider has refused the API key: it is wrong, has expired or lacks the right to read webhooks.
    Key(SourceError),
    /// The provider could not be asked. The reason is the whole chain of errors, without the API key.
    Source(SourceError),
}

impl fmt::Display for SubscriptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnAddress => f.write_str("the address has to begin with https:// or http://"),
            Self::EventType(reason) => f.write_str(reason),
            Self::Key(error) => write!(f, "the provider has refused the API key: {error}"),
            Self::Source(error) => write!(f, "the provider could not be asked: {error}"),
        }
    }
}

impl Error for SubscriptionError {}
