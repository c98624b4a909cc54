//! `VerifiedWebhookService`: the service that verifies and does nothing else.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;
use tracing::{Instrument, Span};

use super::authenticate::{Authentic, authenticate};
use super::future::ResponseFuture;
use super::response::{fail, finish, succeed};
use super::settings::Verification;
use super::telemetry;
use crate::metrics::outcome::Outcome;
use crate::provider::event_types::Wanted;

/// The service of [`VerifiedWebhook`](crate::VerifiedWebhook), around a handler.
#[derive(Clone)]
pub struct VerifiedWebhookService<S> {
    verification: Arc<Verification>,
    inner: S,
}

impl<S> VerifiedWebhookService<S> {
    pub(crate) fn new(verification: Arc<Verification>, inner: S) -> Self {
        Self {
            verification,
            inner,
        }
    }
}

impl<S: fmt::Debug> fmt::Debug for VerifiedWebhookService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifiedWebhookService")
            .field("endpoint", &self.verification.endpoint)
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}

/// The body types must convert from `Bytes`: the layer makes the request's body from the buffered bytes, and the
/// response's body from its own short texts. axum's `Body` and `http_body_util::Full<Bytes>` do.
impl<S, ReqBody, ResBody> Service<Request<ReqBody>> for VerifiedWebhookService<S>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send + 'static,
    ReqBody: Body<Data = Bytes> + From<Bytes> + Send + 'static,
    ReqBody::Error: Into<Box<dyn Error + Send + Sync>>,
    ResBody: From<Bytes> + Send + 'static,
{
    type Response = Response<ResBody>;
    type Error = S::Error;
    type Future = ResponseFuture<ResBody, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        let verification = self.verification.clone();
        // Calls the service that was polled ready, and leaves the clone in its place.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let span = telemetry::span(&Span::current(), &verification);
        let response = async move {
            let (mut head, body) = request.into_parts();
            let authentic = match authenticate(&verification, &head, body, |_| {}).await {
                Ok(authentic) => authentic,
                Err(unhandled) => {
                    telemetry::count(&verification, unhandled.outcome());
                    unhandled.count(&verification.metrics);
                    unhandled.log(&verification);
                    return Ok(unhandled.into_response(&verification));
                }
            };
            let Authentic {
                delivery,
                body,
                wanted,
            } = authentic;
            telemetry::identified(&Span::current(), &delivery);
            let _wait = verification.measure_wait(&delivery);
            if let Some(Wanted::Yes(matched)) = wanted {
                head.extensions.insert(matched);
            }
            let mut request = Request::from_parts(head, ReqBody::from(body));
            request.extensions_mut().insert(delivery);
            // axum's default limit of 2 MB must not refuse a body that the layer has accepted.
            #[cfg(feature = "axum")]
            axum_core::extract::DefaultBodyLimit::disable().apply(&mut request);

            let response = match inner.call(request).await {
                Ok(response) => response,
                Err(error) => {
                    telemetry::inner_error(&verification);
                    return Err(error);
                }
            };
            let outcome = match response.status().is_success() {
                true => Outcome::Verified,
                false => Outcome::Failed,
            };
            telemetry::answered(&verification, &response, outcome);
            let provider = &verification.provider;
            let response = succeed(response, provider);
            let response = fail(response, provider, verification.retry_after);
            Ok(finish(response, outcome, provider))
        };
        ResponseFuture::new(response.instrument(span))
    }
}
