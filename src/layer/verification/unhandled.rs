//! The answer to a request that does not reach the handler.

use std::fmt;

use bytes::Bytes;
use http::header::{ALLOW, HeaderValue};
use http::{Method, Response, StatusCode};
use tracing::{debug, error, info, warn};

use super::canary::Canary;
use super::rejection::{Rejected, Rejection};
use super::response::{LATER, acknowledge, finish, plain, retry_later, says_when, unavailable};
use super::settings::Verification;
use crate::metrics::Metrics;
use crate::metrics::outcome::Outcome;
use crate::provider::Handshake;
use crate::provider::event_types::Ignored;
use crate::tasks_and_errors::error_chain::{BoxError, ErrorChain};
use crate::tasks_and_errors::handler_error::FailureReason;

/// The answer to a request that does not reach the handler.
#[derive(Debug)]
pub(crate) enum Unhandled {
    Rejected(Rejected),
    Handshake(Handshake),
    /// The request is an operator's canary, with this result.
    Canary(Canary),
    /// The request is authentic, and the layer ignores its event type.
    Ignored(Ignored),
    /// The tenant's secrets could not be looked up.
    NoSecrets(BoxError),
    /// The secret of a handshake could not be stored, or the address that confirms the handshake could not be visited.
    HandshakeFailed(BoxError),
    /// The application's code panicked while the request was verified.
    Panicked(String),
}

impl From<Rejection> for Unhandled {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(Rejected {
            rejection,
            tenant: None,
            body: None,
        })
    }
}

impl Unhandled {
    pub(crate) fn outcome(&self) -> Outcome {
        match self {
            Self::Rejected(_) => Outcome::Rejected,
            Self::Handshake(_) => Outcome::Handshake,
            Self::Canary(_) => Outcome::Canary,
            Self::Ignored(_) => Outcome::Ignored,
            Self::NoSecrets(_) | Self::HandshakeFailed(_) | Self::Panicked(_) => Outcome::Failed,
        }
    }

    pub(crate) fn into_response<B: From<Bytes>>(self, verification: &Verification) -> Response<B> {
        let Verification {
            provider,
            retry_after,
            ..
        } = verification;
        let outcome = self.outcome();
        // `assert_idempotent` reads the reason. It is an extension of the response, so it does not leave the process.
        let reason = match &self {
            Self::Rejected(rejected) => Some(rejected.reason(provider)),
            Self::NoSecrets(_) | Self::HandshakeFailed(_) | Self::Panicked(_) => {
                Some(self.to_string())
            }
            Self::Handshake(_) | Self::Canary(_) | Self::Ignored(_) => None,
        };
        let mut response = match self {
            Self::Handshake(handshake) => {
                let mut response = handshake.response();
                outcome.write_to(&mut response);
                return response;
            }
            Self::Canary(canary) => {
                let mut response = canary.into_response(verification);
                outcome.write_to(&mut response);
                return response;
            }
            Self::Ignored(_) => acknowledge(provider),
            Self::Rejected(Rejected { rejection, .. }) => {
                let status = rejection.status_for(provider);
                let mut response = plain(status, rejection.text(provider));
                if says_when(status) {
                    retry_later(&mut response, *retry_after);
                }
                if let Rejection::Method(allowed) = rejection {
                    response.headers_mut().insert(ALLOW, list(&allowed));
                }
                response
            }
            Self::NoSecrets(_) | Self::HandshakeFailed(_) | Self::Panicked(_) => {
                unavailable(LATER, provider, *retry_after)
            }
        };
        if let Some(reason) = reason {
            response.extensions_mut().insert(FailureReason::new(reason));
        }
        finish(response, outcome, provider)
    }

    /// Counts why the request was rejected, if it was.
    pub(crate) fn count(&self, metrics: &Metrics) {
        if let Self::Rejected(rejected) = self {
            metrics.rejection(rejected.rejection.kind());
            if let (Rejection::Signature(_), Some(tenant)) = (&rejected.rejection, &rejected.tenant)
            {
                metrics.tenant_rejected(tenant);
            }
        }
    }

    /// Logs the answer.
    pub(crate) fn log(&self, verification: &Verification) {
        match self {
            Self::Handshake(_) => info!("webhook handshake answered"),
            Self::Canary(canary) => canary.log(),
            Self::Ignored(ignored) => {
                let event_type = ignored.name();
                debug!(event_type, "webhook ignored: no handler for its type");
            }
            Self::NoSecrets(_) | Self::HandshakeFailed(_) | Self::Panicked(_) => error!(
                status = StatusCode::SERVICE_UNAVAILABLE.as_u16(),
                reason = self.to_string(),
                "webhook failed"
            ),
            Self::Rejected(rejected) => {
                let provider = &verification.provider;
                let Rejected {
                    rejection, body, ..
                } = rejected;
                let status = rejection.status_for(provider).as_u16();
                let reason = rejected.reason(provider);
                let body_bytes = body.map(|body| body.length);
                match rejection {
                    // Most requests with another method come from browsers and scanners, and are not deliveries. But
                    // the first such request may be a sign that the layer is in the wrong place.
                    Rejection::Method(_) if verification.notices.is_first_refused_method() => {
                        warn!(
                            status,
                            reason,
                            "webhook rejected; if another handler should have had this request, put the \
                             layer on the webhook's route only (logged once)"
                        );
                    }
                    Rejection::Method(_) => debug!(status, reason, "webhook rejected"),
                    _ => warn!(status, body_bytes, reason, "webhook rejected"),
                }
            }
        }
    }
}

/// The reason of a failure, for the operator.
impl fmt::Display for Unhandled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSecrets(error) => write!(
                f,
                "could not look up the tenant's secrets: {}",
                ErrorChain(&**error)
            ),
            Self::HandshakeFailed(error) => {
                write!(f, "could not answer a handshake: {}", ErrorChain(&**error))
            }
            Self::Panicked(message) => write!(
                f,
                "the application panicked while the request was verified: {message}"
            ),
            Self::Rejected(_) | Self::Handshake(_) | Self::Canary(_) | Self::Ignored(_) => {
                f.write_str(self.outcome().as_str())
            }
        }
    }
}

fn list(methods: &[Method]) -> HeaderValue {
    let methods: Vec<_> = methods.iter().map(Method::as_str).collect();
    // A method is a token, which is always a valid header value.
    HeaderValue::try_from(methods.join(", ")).unwrap_or(HeaderValue::from_static(""))
}
