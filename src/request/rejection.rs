//! Requests that are rejected: the sender is at fault, and nothing has reached Postgres or the
//! handler.

use http::Method;

use super::body::BodyError;
use crate::error::ErrorChain;
use crate::provider::signature::SignatureError;
use crate::provider::{IdentityError, Provider};

/// Why a request is rejected.
#[derive(Debug)]
pub(super) enum Rejection {
    /// With the methods that the provider uses.
    Method(Vec<Method>),
    Signature(SignatureError),
    Identity(IdentityError),
    Body(BodyError),
}

impl From<SignatureError> for Rejection {
    fn from(error: SignatureError) -> Self {
        Self::Signature(error)
    }
}

impl From<IdentityError> for Rejection {
    fn from(error: IdentityError) -> Self {
        Self::Identity(error)
    }
}

impl From<BodyError> for Rejection {
    fn from(error: BodyError) -> Self {
        Self::Body(error)
    }
}

impl Rejection {
    /// For the sender. It does not say what is wrong with a signature.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Method(_) => "method not allowed".into(),
            Self::Signature(_) => "signature missing or not valid".into(),
            Self::Identity(error) => error.to_string(),
            Self::Body(error) => error.to_string(),
        }
    }

    /// For the metrics: one of a few names.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Method(_) => "method_not_allowed",
            Self::Signature(error) => match error {
                SignatureError::MissingHeader(_) => "missing_header",
                SignatureError::MalformedHeader(_) => "malformed_header",
                SignatureError::MalformedBody => "malformed_body",
                SignatureError::NoPublicUrl => "no_public_url",
                SignatureError::NoMatch => "no_match",
                SignatureError::UnusableSecret => "unusable_secret",
                SignatureError::NoTenant => "no_tenant",
                SignatureError::UnknownTenant => "unknown_tenant",
                SignatureError::NoTimestamp => "no_timestamp",
                SignatureError::TooOld => "too_old",
                SignatureError::TooNew => "too_new",
            },
            Self::Identity(_) => "no_usable_id",
            Self::Body(BodyError::TooLarge) => "body_too_large",
            Self::Body(BodyError::TooSlow) => "body_too_slow",
            Self::Body(BodyError::Broken(_)) => "body_broken",
        }
    }

    /// For the operator.
    pub(super) fn reason(&self, provider: &Provider) -> String {
        match self {
            Self::Method(_) => self.text(),
            Self::Signature(error @ SignatureError::NoMatch) if provider.signs_url() => {
                match provider.url_base().describe() {
                    Some(url) => format!("{error}, or another URL than {url}"),
                    None => error.to_string(),
                }
            }
            Self::Signature(error) => ErrorChain(error).to_string(),
            Self::Identity(error) => ErrorChain(error).to_string(),
            Self::Body(error) => ErrorChain(error).to_string(),
        }
    }
}
