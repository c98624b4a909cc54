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
use crate::claim::{Claim, Content, Repeat};
use crate::delivery::Delivery;
use crate::error::{Failure, Rejection};
use crate::in_flight::{Lead, Line, Place};
use crate::layer::{IdempotentWebhook, Recent};
use crate::panic::catch_panic;
use crate::provider::VerifyError;
use crate::report;
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
        Err(outcome) => {
            report::unidentified(&layer.endpoint, layer.provider.name(), &outcome);
            return Ok(outcome);
        }
    };
    let content = layer.content(&delivery, &body);
    let outcome = match line_up(&layer, &delivery, content, deadline).await {
        Ok(leads) => {
            let request = Request::from_parts(head, ReqBody::from(body));
            let turn = Turn {
                delivery: delivery.clone(),
                content,
                leads,
                deadline,
            };
            let work = process(layer, inner, request, turn);
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
    report::delivery(&delivery, Some(&outcome));
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

/// A delivery that nobody else in this process is at, until its leads are dropped.
struct Turn {
    delivery: Delivery,
    content: Option<Content>,
    leads: Leads,
    deadline: Instant,
}

struct Leads {
    by_id: Lead,
    /// There is one where replays are guarded against.
    by_content: Option<Lead>,
}

/// Waits until nobody else in this process is at the delivery, without a connection.
async fn line_up<B>(
    layer: &IdempotentWebhook,
    delivery: &Delivery,
    content: Option<Content>,
    deadline: Instant,
) -> Result<Leads, Outcome<B>> {
    let key = delivery.key();
    let is_recent = |recent: &Recent| recent.get(&key).is_some();
    if layer.recent.as_ref().is_some_and(is_recent) {
        return Err(Outcome::Duplicate(Repeat::Id));
    }
    let tenant = key.tenant.clone();
    let by_id = match layer.in_flight.turn(Line::Delivery(key), deadline).await {
        Place::Lead(lead) => lead,
        Place::Processed => return Err(Outcome::Duplicate(Repeat::Id)),
        Place::TimeUp => return Err(Outcome::InFlight),
    };
    let by_content = match content {
        Some(Content {
            digest,
            guarded: true,
        }) => {
            let line = Line::Digest { tenant, digest };
            match layer.in_flight.turn(line, deadline).await {
                Place::Lead(lead) => Some(lead),
                Place::Processed => {
                    return Err(Outcome::Duplicate(Repeat::BodyOnly { first: None }));
                }
                Place::TimeUp => return Err(Outcome::InFlight),
            }
        }
        Some(_) | None => None,
    };
    Ok(Leads { by_id, by_content })
}

impl Leads {
    /// The delivery is processed, whatever it may be called.
    fn processed(self) {
        self.by_id.processed();
        if let Some(by_content) = self.by_content {
            by_content.processed();
        }
    }
}

/// From BEGIN to COMMIT.
async fn process<S, ReqBody, ResBody>(
    layer: Arc<IdempotentWebhook>,
    inner: S,
    request: Request<ReqBody>,
    turn: Turn,
) -> Result<Outcome<ResBody>, S::Error>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
{
    let delivery = turn.delivery.clone();
    let outcome = claim_and_handle(&layer, inner, request, turn).await;
    report::delivery(&delivery, outcome.as_ref().ok());
    outcome
}

async fn claim_and_handle<S, ReqBody, ResBody>(
    layer: &IdempotentWebhook,
    inner: S,
    request: Request<ReqBody>,
    turn: Turn,
) -> Result<Outcome<ResBody>, S::Error>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
{
    let store = &layer.store;
    let window = layer.provider.max_redelivery();
    let Turn {
        delivery,
        content,
        leads,
        deadline,
    } = turn;
    let (connection, id) = match store.claim(&delivery, content, window, deadline).await {
        Ok(Claim::Claimed(connection, id)) => (connection, id),
        Ok(Claim::Duplicate(repeat)) => {
            match (&repeat, leads.by_content) {
                // What this one says may not have been processed, so the lead by content is
                // passed on.
                (Repeat::Id | Repeat::IdOnly { .. }, _) => leads.by_id.processed(),
                (Repeat::BodyOnly { .. }, Some(by_content)) => by_content.processed(),
                (Repeat::BodyOnly { .. }, None) => {}
            }
            return Ok(Outcome::Duplicate(repeat));
        }
        Ok(Claim::InFlight) => return Ok(Outcome::InFlight),
        Err(error) => return Ok(Outcome::Failed(Failure::Unavailable(error))),
    };
    let (answer, connection) = handle(layer, inner, request, &delivery, connection).await;
    let Some(mut connection) = connection else {
        return Ok(Outcome::Failed(Failure::Outlived));
    };
    match answer {
        Ok(Ok(response)) if layer.commits(response.status()) => {
            let after_commit = std::mem::take(&mut connection.after_commit);
            match store.commit(connection, id).await {
                Ok(()) => {
                    if let Some(recent) = &layer.recent {
                        recent.insert(delivery.key(), ());
                    }
                    after_commit.spawn(delivery, layer.handler_time, layer.in_flight.busy());
                    leads.processed();
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
    delivery: &Delivery,
    connection: InTransaction,
) -> (
    Result<Result<S::Response, S::Error>, Failure>,
    Option<InTransaction>,
)
where
    S: Service<Request<ReqBody>>,
{
    let slot = Slot::new(delivery.clone(), connection);
    request.extensions_mut().insert(delivery.clone());
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
