//! The assertion that a handler is idempotent.

use std::error::Error;
use std::fmt::Debug;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Full, Limited};
use tower_service::Service;

use super::TestDelivery;
use crate::layer::request::{HandleFirst, RollBack, RolledBack, Skipped, Suspicion};
use crate::metrics::outcome::Outcome;
use crate::tasks_and_errors::handler_error::FailureReason;

/// How many copies are sent at the same time.
const COPIES: usize = 5;

/// How many bytes of a response body are shown.
const MAX_TEXT: usize = 2000;

/// Asserts that a delivery takes effect once, regardless of how often it is sent.
///
/// `effects` counts the effects of the delivery with a query of your choice, for example the number of rows in a table
/// that the handler writes. For several tables, `select (select count(*) from a) + (select count(*) from b)` adds the
/// numbers. The delivery is sent
///
/// 1. once, and its success is rolled back: no effect may remain. An effect that remains was written on another
///    connection, and not through [`DedupeTx`](crate::DedupeTx);
/// 2. five times at the same time: one copy must be processed and have at least one effect, and the other copies must
///    be duplicates;
/// 3. once more: it must be a duplicate without further effects.
///
/// The handler must take [`DedupeTx`](crate::DedupeTx) or [`LateClaim`](crate::LateClaim), unless the layer is
/// configured with [`allow_unused_transaction`](crate::IdempotentWebhook::allow_unused_transaction). With that setting,
/// the first step checks nothing. [`IdempotentWebhook`](crate::IdempotentWebhook) must answer each copy with 2xx. All
/// copies are the same delivery, so the handler's tables may have unique keys, and the layer may have a
/// [`replay_guard`](crate::IdempotentWebhook::replay_guard).
///
/// Use a separate database, or at least a delivery id that no other test uses. A delivery that was processed before
/// would have no further effects.
///
/// # Panics
///
/// If any of these conditions does not hold. The message says what is wrong, with the status and text of the response
/// and the reason of a [`HandlerError`](crate::HandlerError).
#[expect(clippy::panic, reason = "an assertion panics")]
pub async fn assert_idempotent<S, R>(
    service: &S,
    delivery: &TestDelivery,
    mut effects: impl AsyncFnMut() -> i64,
) where
    S: Service<Request<Full<Bytes>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Debug + Send,
    R: Body + Send + 'static,
    R::Data: Send,
    R::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let before = effects().await;

    send_and_roll_back(service, delivery).await;
    let remaining = effects().await - before;
    if remaining != 0 {
        panic!(
            "the delivery was rolled back, and {remaining} of its effects remain: its handler wrote them on another \
             connection; write through its `DedupeTx`: `&mut *tx`"
        );
    }
    let processed = send(service, delivery, COPIES).await;
    let once = effects().await - before;
    if processed == 0 {
        panic!("the delivery was processed before: use a separate database or another id");
    }
    if processed > 1 {
        panic!("of {COPIES} copies of the delivery, {processed} were processed");
    }
    if once <= 0 {
        panic!(
            "the delivery had {once} effects: the query does not count what the handler does, the handler \
             ignores its event type (`TestDelivery::event_type`), or it takes `LateClaim` and does not call \
             `begin`"
        );
    }
    send(service, delivery, 1).await;
    let again = effects().await - before - once;
    if again != 0 {
        panic!("the delivery had been processed, was sent again and had {again} more effects");
    }
}

/// Sends the delivery once, and rolls back its success.
#[expect(clippy::panic, reason = "an assertion panics")]
async fn send_and_roll_back<S, R>(service: &S, delivery: &TestDelivery)
where
    S: Service<Request<Full<Bytes>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Debug + Send,
    R: Body + Send + 'static,
    R::Data: Send,
    R::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let mut request = delivery.request();
    request.extensions_mut().insert(RollBack);
    let response = spawn_send(service, request).await;
    let extensions = response.extensions();
    if extensions.get::<RolledBack>().is_some() || extensions.get::<Skipped>().is_some() {
        return;
    }
    match extensions.get() {
        Some(Outcome::Duplicate) => panic!(
            "the delivery was processed before: use a separate database or another id. Or its handler has \
             committed it through another driver (`LateClaim::committed`): set `allow_unused_transaction` on the \
             layer"
        ),
        Some(Outcome::Ignored) => {
            panic!("the layer ignores events of this type: it is not in `Events` or `only`")
        }
        _ => panic!("{}", describe(response).await),
    }
}

/// Sends copies at the same time, and returns how many were processed.
#[expect(clippy::panic, reason = "an assertion panics")]
async fn send<S, R>(service: &S, delivery: &TestDelivery, copies: usize) -> usize
where
    S: Service<Request<Full<Bytes>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Debug + Send,
    R: Body + Send + 'static,
    R::Data: Send,
    R::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let sending: Vec<_> = (0..copies)
        .map(|_| spawn_send(service, delivery.request()))
        .collect();
    let mut processed = 0;
    for sent in sending {
        let response = sent.await;
        if let Some(suspicion) = response.extensions().get::<Suspicion>() {
            panic!("the delivery was processed, but {suspicion}");
        }
        match response.extensions().get() {
            Some(Outcome::Processed) => processed += 1,
            Some(_) if response.status().is_success() => {}
            _ => panic!("{}", describe(response).await),
        }
    }
    processed
}

/// Sends a request in its own task, which starts at once.
#[expect(clippy::panic, reason = "an assertion panics")]
fn spawn_send<S, R>(
    service: &S,
    mut request: Request<Full<Bytes>>,
) -> impl Future<Output = Response<R>> + use<S, R>
where
    S: Service<Request<Full<Bytes>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Debug + Send,
    R: Send + 'static,
{
    // The effects must be in the database when the response arrives.
    request.extensions_mut().insert(HandleFirst);
    let mut service = service.clone();
    let task = tokio::spawn(async move {
        std::future::poll_fn(|cx| service.poll_ready(cx)).await?;
        service.call(request).await
    });
    async {
        match task.await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => panic!("the delivery failed: {error:?}"),
            Err(error) => panic!("the delivery panicked: {error}"),
        }
    }
}

/// Describes a response, for the message of a failed assertion.
async fn describe<R>(response: Response<R>) -> String
where
    R: Body,
    R::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let (head, body) = response.into_parts();
    let mut text = format!("the delivery was answered with {}", head.status);
    match head.extensions.get::<Outcome>() {
        Some(outcome) => text += &format!(", outcome {outcome}"),
        None => text += ", and not by IdempotentWebhook: is the layer on this route?",
    }
    if let Some(reason) = head.extensions.get::<FailureReason>() {
        text += &format!(", reason: {}", reason.text);
    }
    if let Ok(body) = Limited::new(body, MAX_TEXT).collect().await {
        let body = body.to_bytes();
        if !body.is_empty() {
            text += &format!(", text: {}", String::from_utf8_lossy(&body));
        }
    }
    text
}
