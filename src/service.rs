//! The way of a request, from its head to the response.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
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
use crate::claim::Claim;
use crate::delivery::Delivery;
use crate::error::{Failure, Rejection};
use crate::in_flight::{Lead, Turn};
use crate::layer::IdempotentWebhook;
use crate::recent::Recent;
use crate::response::Outcome;
use crate::tx::{InTransaction, Slot};

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
        ResponseFuture(Box::pin(async move {
            let retry_after = layer.retry_after;
            let outcome = receive(layer, inner, request).await?;
            Ok(outcome.into_response(retry_after))
        }))
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
    let (body, delivery) = match authenticate(&layer, &head, body).await {
        Ok(authentic) => authentic,
        Err(rejection) => {
            rejection.log(&layer.endpoint, layer.provider.name());
            return Ok(Outcome::Rejected(rejection));
        }
    };
    let remembered = |recent: &Recent| recent.contains(delivery.id());
    let turn = if layer.recent.as_ref().is_some_and(remembered) {
        Turn::Processed
    } else {
        layer.in_flight.turn(delivery.id(), deadline).await
    };
    let outcome = match turn {
        Turn::Processed => Outcome::Duplicate,
        Turn::TimeUp => Outcome::InFlight,
        Turn::Lead(lead) => {
            let request = Request::from_parts(head, ReqBody::from(body));
            let work = process(layer, inner, request, delivery.clone(), lead, deadline);
            match tokio::spawn(work.in_current_span()).await {
                Ok(logged) => return logged,
                Err(error) => Outcome::Failed(match error.try_into_panic() {
                    Ok(payload) => Failure::panicked(&*payload),
                    Err(_) => Failure::Cancelled,
                }),
            }
        }
    };
    log(&delivery, Some(&outcome));
    Ok(outcome)
}

/// Reads the request and finds out whose delivery it is, without Postgres.
async fn authenticate<B>(
    layer: &IdempotentWebhook,
    head: &Parts,
    body: B,
) -> Result<(Bytes, Delivery), Rejection>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let provider = &layer.provider;
    provider.check_head(head)?;
    let body = body::buffer(&head.headers, body, provider.max_body(), layer.body_time).await?;
    let verified = provider.verify(head, &body, SystemTime::now())?;
    let delivery = Delivery::new(layer.endpoint.clone(), provider.shared_name(), verified);
    Ok((body, delivery))
}

/// From BEGIN to COMMIT.
async fn process<S, ReqBody, ResBody>(
    layer: Arc<IdempotentWebhook>,
    inner: S,
    request: Request<ReqBody>,
    delivery: Delivery,
    lead: Lead,
    deadline: Instant,
) -> Result<Outcome<ResBody>, S::Error>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
{
    let outcome = claim_and_handle(&layer, inner, request, &delivery, lead, deadline).await;
    log(&delivery, outcome.as_ref().ok());
    outcome
}

async fn claim_and_handle<S, ReqBody, ResBody>(
    layer: &IdempotentWebhook,
    inner: S,
    request: Request<ReqBody>,
    delivery: &Delivery,
    lead: Lead,
    deadline: Instant,
) -> Result<Outcome<ResBody>, S::Error>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
{
    let store = &layer.store;
    let window = layer.provider.max_redelivery();
    let (connection, id) = match store.claim(delivery, window, deadline).await {
        Ok(Claim::Claimed(connection, id)) => (connection, id),
        Ok(Claim::Duplicate) => {
            lead.processed();
            return Ok(Outcome::Duplicate);
        }
        Ok(Claim::InFlight) => return Ok(Outcome::InFlight),
        Err(error) => return Ok(Outcome::Failed(Failure::Unavailable(error))),
    };
    let (answer, connection) = handle(layer, inner, request, delivery.clone(), connection).await;
    let Some(connection) = connection else {
        return Ok(Outcome::Failed(Failure::Outlived));
    };
    match answer {
        Ok(Ok(response)) if layer.commits(response.status()) => {
            match store.commit(connection, id).await {
                Ok(()) => {
                    if let Some(recent) = &layer.recent {
                        recent.remember(delivery.id());
                    }
                    lead.processed();
                    Ok(Outcome::Processed(response))
                }
                Err(error) => Ok(Outcome::Failed(Failure::Commit(error))),
            }
        }
        Ok(Ok(response)) => {
            store.roll_back(connection).await;
            Ok(Outcome::RolledBack(response))
        }
        Ok(Err(error)) => {
            store.roll_back(connection).await;
            Err(error)
        }
        Err(failure) => {
            store.roll_back(connection).await;
            Ok(Outcome::Failed(failure))
        }
    }
}

/// Runs the handler with the transaction, and takes the transaction back. Without one,
/// the handler has left it somewhere.
async fn handle<S, ReqBody>(
    layer: &IdempotentWebhook,
    mut inner: S,
    mut request: Request<ReqBody>,
    delivery: Delivery,
    connection: InTransaction,
) -> (
    Result<Result<S::Response, S::Error>, Failure>,
    Option<InTransaction>,
)
where
    S: Service<Request<ReqBody>>,
{
    let slot = Slot::new(connection);
    request.extensions_mut().insert(delivery);
    request.extensions_mut().insert(slot.clone());
    // The body has been bounded here, so axum's default of 2 MB must not refuse it.
    #[cfg(feature = "axum")]
    axum_core::extract::DefaultBodyLimit::disable().apply(&mut request);

    let handler = catch_panic(async move { inner.call(request).await });
    let answer = match tokio::time::timeout(layer.handler_time, handler).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(payload)) => Err(Failure::panicked(&*payload)),
        Err(_) => Err(Failure::HandlerTimedOut(layer.handler_time)),
    };
    (answer, slot.close())
}

/// Catches a panic at any poll, so that the rollback can still be awaited.
async fn catch_panic<F: Future>(future: F) -> Result<F::Output, Box<dyn Any + Send>> {
    let mut future = pin!(future);
    poll_fn(|cx| {
        // What the panic has left half-done is never looked at: the future is dropped and
        // the transaction rolled back.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(poll) => poll.map(Ok),
            Err(payload) => Poll::Ready(Err(payload)),
        }
    })
    .await
}

/// For the operator. The delivery is authentic, so its id may be named.
fn log<B>(delivery: &Delivery, outcome: Option<&Outcome<B>>) {
    let endpoint = delivery.endpoint();
    let provider = delivery.provider();
    let delivery_id = delivery.id().as_str();
    match outcome {
        Some(Outcome::Processed(_)) => {
            tracing::debug!(endpoint, provider, delivery_id, "webhook processed");
        }
        Some(Outcome::Duplicate) => {
            tracing::debug!(endpoint, provider, delivery_id, "webhook duplicate");
        }
        Some(Outcome::InFlight) => {
            tracing::info!(endpoint, provider, delivery_id, "webhook still in flight");
        }
        Some(Outcome::RolledBack(response)) => tracing::warn!(
            endpoint,
            provider,
            delivery_id,
            status = response.status().as_u16(),
            "webhook rolled back: the handler did not answer success"
        ),
        Some(Outcome::Failed(failure)) => tracing::error!(
            endpoint,
            provider,
            delivery_id,
            status = failure.status().as_u16(),
            reason = %failure,
            "webhook failed"
        ),
        None => tracing::warn!(
            endpoint,
            provider,
            delivery_id,
            "webhook rolled back: the inner service failed"
        ),
        // Logged where it is found out, before there is a delivery.
        Some(Outcome::Rejected(_)) => {}
    }
}
