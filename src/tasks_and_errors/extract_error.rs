//! The error of the extractors.

use std::fmt;

use http::StatusCode;

/// Why an extractor of this crate failed: a mistake in the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExtractError {
    /// The request did not pass through the layer.
    MissingLayer,
    /// Another extractor or a middleware has already taken the transaction.
    AlreadyTaken,
    /// The handler has answered, and the transaction has ended.
    Over,
    /// A handler of a route with [`late_claim`](crate::IdempotentWebhook::late_claim) takes [`DedupeTx`](crate::DedupeTx).
    ClaimedLate,
    /// A handler of a route without `late_claim` takes [`LateClaim`](crate::LateClaim).
    ClaimedBefore,
}

impl ExtractError {
    /// The status of the response: 500.
    pub fn status(&self) -> StatusCode {
        StatusCode::INTERNAL_SERVER_ERROR
    }

    /// The body of the response. It does not reveal the mistake; the log does.
    pub fn body_text(&self) -> &'static str {
        "internal error"
    }
}

impl fmt::Display for ExtractError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MissingLayer => {
                "the route has no IdempotentWebhook or VerifiedWebhook: add `.layer(IdempotentWebhook::new(..))` to \
                 its handler, or to the router after its `.route(..)`: a layer covers only routes that were added \
                 before it"
            }
            Self::AlreadyTaken => {
                "the transaction is taken twice for one request: take it once and pass `&mut tx`"
            }
            Self::Over => "the transaction is taken after the handler has answered",
            Self::ClaimedLate => {
                "the layer has `late_claim`, so there is no transaction yet: take `LateClaim` in place of \
                 `DedupeTx`, and call `begin` on it"
            }
            Self::ClaimedBefore => {
                "the layer has claimed the delivery: take `DedupeTx` in place of `LateClaim`, or set \
                 `late_claim` on the layer"
            }
        })
    }
}

impl std::error::Error for ExtractError {}
