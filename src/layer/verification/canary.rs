//! Canaries: test requests that an operator sends. The answer shows whether the canary was authentic, and whether it
//! could be claimed. A canary is not a request from the provider: it is not counted, and the handler is not called.

use std::fmt;

use bytes::Bytes;
use http::{Response, StatusCode};
use tracing::{info, warn};

use super::response::{plain, retry_later};
use super::settings::Verification;
use crate::provider::delivery::Tenant;

/// The result of a canary: how many of the steps before the handler have succeeded.
#[derive(Debug)]
pub(crate) enum Canary {
    /// It is authentic. For [`VerifiedWebhook`](crate::VerifiedWebhook), which claims nothing, this is the final
    /// result. `IdempotentWebhook` then tries to claim the canary.
    Authentic(Option<Tenant>),
    /// It was claimed, and the claim was rolled back.
    Claimed,
    /// It could not be claimed. Contains the reason, for the operator.
    NotClaimed(String),
}

impl Canary {
    /// The sender is an operator, so the response does not follow the provider's requirements.
    pub(super) fn into_response<B: From<Bytes>>(self, verification: &Verification) -> Response<B> {
        let status = match self {
            Self::Authentic(_) | Self::Claimed => StatusCode::OK,
            Self::NotClaimed(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        let mut response = plain(status, self.to_string());
        if status == StatusCode::SERVICE_UNAVAILABLE {
            retry_later(&mut response, verification.retry_after);
        }
        response
    }

    pub(super) fn log(&self) {
        match self {
            Self::Authentic(_) | Self::Claimed => info!("webhook canary answered: {self}"),
            Self::NotClaimed(reason) => warn!(reason, "webhook canary answered: {self}"),
        }
    }
}

/// The text for the sender.
impl fmt::Display for Canary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Authentic(_) => "the signature is valid; this layer claims nothing",
            Self::Claimed => "the signature is valid; claimed in Postgres, and rolled back",
            Self::NotClaimed(_) => "the signature is valid; Postgres could not be reached in time, or has refused the claim",
        })
    }
}
