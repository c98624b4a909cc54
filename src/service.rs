//! The way of a request, from its head to the response.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::SystemTime;

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use http_body::Body;
use tokio::time::Instant;
use tower_service::Service;
use tracing::Instrument;

use crate::body;
use crate::delivery::Delivery;
use crate::error::{Failure, Rejection};
use crate::layer::IdempotentWebhook;
use crate::process::{Turn, line_up, process};
use crate::provider::VerifyError;
use crate::report;
use crate::response::Outcome;
use crate::tx::DedupeTx;

/// The service that [`IdempotentWebhook`] puts around a handler.
#[derive(Clone, Debug)]
pub struct IdempotentWebhookService<S> {
    layer: Arc<IdempotentWebhook>,
    inner: S,
}

impl<S> IdempotentWebhookService<S> {
    pub(crate) fn new(layer: Arc<IdempotentWebhook>, inner: S) -> Self {
        Self { layer, inner }
    }
}

/// The body of a request must be makeable from the bytes that were buffered, and that of
/// a response from the layer's own short texts: so are axum's `Body` and
/// `http_body_util::Full<Bytes>`.
impl<S, ReqBody, ResBody> Service<Request<ReqBody>> for IdempotentWebhookService<S>
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
        let layer = self.layer.clone();
        // The service that was polled ready is the one to call.
        let clone = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, clone);
        let span = report::span(&layer.endpoint, layer.provider.name());
        let response = async move {
            let retry_after = layer.retry_after;
            let outcome = receive(layer, inner, request).await?;
            Ok(outcome.into_response(retry_after))
        };
        ResponseFuture(Box::pin(response.instrument(span)))
    }
}

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The response of [`IdempotentWebhookService`].
pub struct ResponseFuture<B, E>(BoxFuture<Result<Response<B>, E>>);

impl<B, E> Future for ResponseFuture<B, E> {
    type Output = Result<Response<B>, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

impl<B, E> fmt::Debug for ResponseFuture<B, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}

/// Verifies, waits for its turn, and has the delivery processed in a task of its own,
/// which runs to its end even if the sender hangs up and this future is dropped.
async fn receive<S, ReqBody, ResBody>(
    layer: Arc<IdempotentWebhook>,
    inner: S,
    request: Request<ReqBody>,
) -> Result<Outcome<ResBody>, S::Error>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>> + Send + 'static,
    S::Future: Send,
    S::Error: Send + 'static,
    ReqBody: Body<Data = Bytes> + From<Bytes> + Send + 'static,
    ReqBody::Error: Into<Box<dyn Error + Send + Sync>>,
    ResBody: Send + 'static,
{
    let deadline = Instant::now() + layer.in_flight_wait;
    let (head, body) = request.into_parts();
    if DedupeTx::is_in(&head.extensions) {
        let outcome = Outcome::Failed(Failure::Nested);
        report::outcome(&layer.meter, Some(&outcome));
        return Ok(outcome);
    }
    let (body, delivery) = match authenticate(&layer, &head, body).await {
        Ok(authentic) => authentic,
        Err(outcome) => {
            report::outcome(&layer.meter, Some(&outcome));
            return Ok(outcome);
        }
    };
    report::identified(&delivery);
    let content = layer.content(&delivery, &body);
    let outcome = match line_up(&layer, &delivery, content, deadline).await {
        Ok(leads) => {
            let request = Request::from_parts(head, ReqBody::from(body));
            let turn = Turn {
                delivery,
                content,
                leads,
                deadline,
            };
            // Boxed, or spawning would move its kilobytes a dozen times.
            let work = Box::pin(process(layer.clone(), inner, request, turn));
            match tokio::spawn(work.in_current_span()).await {
                Ok(reported) => return reported,
                Err(error) => Outcome::Failed(match error.try_into_panic() {
                    Ok(payload) => Failure::panicked(&*payload),
                    Err(_) => Failure::Cancelled,
                }),
            }
        }
        Err(outcome) => outcome,
    };
    report::outcome(&layer.meter, Some(&outcome));
    Ok(outcome)
}

/// Reads the request and finds out whose delivery it is, without Postgres.
async fn authenticate<B, ResBody>(
    layer: &IdempotentWebhook,
    head: &Parts,
    body: B,
) -> Result<(Bytes, Delivery), Outcome<ResBody>>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let rejected = |rejection: Rejection| Outcome::Rejected(rejection);
    let provider = &layer.provider;
    provider
        .check_head(head)
        .map_err(|error| rejected(error.into()))?;
    let body = body::buffer(&head.headers, body, provider.max_body(), layer.body_time)
        .await
        .map_err(|error| rejected(error.into()))?;
    let found = tokio::time::timeout(layer.store.timeout, provider.keys().find(head))
        .await
        .unwrap_or_else(|_| Err("the lookup took too long".into()))
        .map_err(|error| Outcome::Failed(Failure::NoSecrets(error)))?;
    let verified = provider
        .verify_as(found.secrets.as_deref(), head, &body, SystemTime::now())
        .map_err(|error| match error {
            VerifyError::Signature(error) => rejected(error.into()),
            VerifyError::Identity(error) => rejected(Rejection::Identity(error)),
            VerifyError::Handshake(handshake) => Outcome::Handshake(handshake),
        })?;
    let endpoint = layer.endpoint.clone();
    let delivery = Delivery::new(endpoint, provider.shared_name(), found.tenant, verified);
    Ok((body, delivery))
}
