//! The outcome of a request, as the response shows it.

use std::fmt;

use http::Response;
use http::header::{HeaderName, HeaderValue};

/// The header that shows the outcome of the request in every response: `x-webhook-outcome`.
pub const OUTCOME_HEADER: HeaderName = HeaderName::from_static("x-webhook-outcome");

/// The outcome of a request. Every response of the layer has it in its extensions, for middleware outside of the layer,
/// and as text in [`OUTCOME_HEADER`].
///
/// ```
/// use axum::{Router, http::Request, response::Response};
/// use idempotent_webhook::Outcome;
/// use tower::ServiceExt;
///
/// /// A middleware outside of the layer.
/// fn observe(response: Response) -> Response {
///     if response.extensions().get() == Some(&Outcome::Failed) {
///         eprintln!("a delivery failed with {}", response.status());
///     }
///     response
/// }
///
/// # fn main_(app: Router) {
/// let app: Router = app.layer(axum::middleware::map_response(async |response| observe(response)));
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// The handler answered 2xx, and the commit was confirmed.
    Processed,
    /// The delivery had been processed before.
    Duplicate,
    /// An earlier attempt was still in flight when the wait ended.
    InFlight,
    /// The request is not an authentic and usable delivery.
    Rejected,
    /// Nothing was committed, or the result of the commit is unknown. As far as the layer knows, the delivery is not
    /// kept.
    Failed,
    /// Nothing was committed, and the delivery is kept for [`Recovery`](crate::Recovery).
    Kept,
    /// Nothing was committed, and an operator has discarded the delivery during the attempt. This occurs only with
    /// [`Keep::acknowledge`](crate::Keep::acknowledge), which hides both facts from the provider.
    Discarded,
    /// The delivery is kept, and its handler runs in the background.
    Accepted,
    /// The request was a handshake.
    Handshake,
    /// The delivery is authentic, but the layer ignores its event type.
    Ignored,
    /// The request was a [canary](crate::documentation::operating#a-canary) of an operator. It is not counted.
    Canary,
    /// The delivery is authentic, [`VerifiedWebhook`](crate::VerifiedWebhook) has passed it on, and the handler
    /// answered 2xx.
    Verified,
}

impl Outcome {
    /// Whether the request can come from the provider.
    pub(crate) fn is_of_the_provider(self) -> bool {
        !matches!(self, Self::Canary)
    }

    /// All counted outcomes.
    #[cfg(feature = "metrics")]
    pub(crate) const ALL: [Self; 11] = [
        Self::Processed,
        Self::Duplicate,
        Self::InFlight,
        Self::Rejected,
        Self::Failed,
        Self::Kept,
        Self::Discarded,
        Self::Accepted,
        Self::Handshake,
        Self::Ignored,
        Self::Verified,
    ];

    /// Whether a recovery attempt can have this outcome. Only requests can have the other outcomes.
    #[cfg(feature = "metrics")]
    pub(crate) fn is_of_attempts(self) -> bool {
        match self {
            Self::Processed | Self::Duplicate | Self::InFlight | Self::Failed | Self::Kept => true,
            Self::Rejected
            | Self::Discarded
            | Self::Accepted
            | Self::Handshake
            | Self::Ignored
            | Self::Canary
            | Self::Verified => false,
        }
    }

    /// The text in [`OUTCOME_HEADER`] and in the metrics, such as `in-flight`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Processed => "processed",
            Self::Duplicate => "duplicate",
            Self::InFlight => "in-flight",
            Self::Rejected => "rejected",
            Self::Failed => "failed",
            Self::Kept => "kept",
            Self::Discarded => "discarded",
            Self::Accepted => "accepted",
            Self::Handshake => "handshake",
            Self::Ignored => "ignored",
            Self::Canary => "canary",
            Self::Verified => "verified",
        }
    }

    /// Adds the outcome to a response.
    pub(crate) fn write_to<B>(self, response: &mut Response<B>) {
        let text = HeaderValue::from_static(self.as_str());
        response.headers_mut().insert(OUTCOME_HEADER, text);
        response.extensions_mut().insert(self);
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
