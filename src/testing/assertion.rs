//! The assertion that a handler is idempotent.

use std::fmt::Debug;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tower_service::Service;

use super::TestDelivery;
use crate::response::{OUTCOME, UnusedTransaction};

/// How many copies are sent at the same moment.
const COPIES: usize = 5;

/// Asserts that the effects of a delivery happen once, however often it is sent.
///
/// `effects` counts them, by a query of the test's own: for example the rows of a table to
/// which the handler writes. The delivery is sent
///
/// 1. five times at the same moment: one copy is processed and has at least one effect, the
///    others are duplicates;
/// 2. once more: a duplicate without further effects.
///
/// The handler must take [`DedupeTx`](crate::DedupeTx), unless the layer has
/// [`allow_unused_transaction`](crate::IdempotentWebhook::allow_unused_transaction). Each copy
/// must be answered with 2xx, and by
/// [`IdempotentWebhook`](crate::IdempotentWebhook), which says in `x-webhook-outcome` what
/// became of a delivery. All copies are the same delivery, so the handler may have a unique key
/// of its own, and the layer a [`replay_guard`](crate::IdempotentWebhook::replay_guard).
///
/// Run it on a database of its own, or at least with an id that has not been used there:
/// a delivery that was processed before has no effects.
///
/// # Panics
///
/// If any of this does not hold, with a message that says what.
#[expect(clippy::panic, reason = "an assertion panics")]
pub async fn assert_idempotent<S, R>(
    service: &S,
    delivery: &TestDelivery,
    mut effects: impl AsyncFnMut() -> i64,
) where
    S: Service<Request<Full<Bytes>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Debug + Send,
    R: Send + 'static,
{
    let before = effects().await;

    let processed = send(service, delivery, COPIES).await;
    let once = effects().await - before;
    if processed == 0 {
        panic!("the delivery was processed before: use a database or an id of its own");
    }
    if processed > 1 {
        panic!("of {COPIES} copies of the delivery, {processed} were processed");
    }
    if once <= 0 {
        panic!(
            "the delivery had {once} effects: the query does not count what the handler \
             does"
        );
    }
    send(service, delivery, 1).await;
    let again = effects().await - before - once;
    if again != 0 {
        panic!("the delivery had been processed, was sent again and had {again} more effects");
    }
}

/// Sends copies at the same moment, and returns how many were processed.
#[expect(clippy::panic, reason = "an assertion panics")]
async fn send<S, R>(service: &S, delivery: &TestDelivery, copies: usize) -> usize
where
    S: Service<Request<Full<Bytes>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Debug + Send,
    R: Send + 'static,
{
    let sending: Vec<_> = (0..copies)
        .map(|_| {
            let mut service = service.clone();
            let request = delivery.request();
            tokio::spawn(async move {
                std::future::poll_fn(|cx| service.poll_ready(cx)).await?;
                service.call(request).await
            })
        })
        .collect();
    let mut processed = 0;
    for sent in sending {
        let response = match sent.await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => panic!("the delivery failed: {error:?}"),
            Err(error) => panic!("the delivery panicked: {error}"),
        };
        let status = response.status();
        if response.extensions().get::<UnusedTransaction>().is_some() {
            panic!(
                "the delivery was processed, but its handler has not taken DedupeTx: what it \
                 wrote by other connections is not part of the transaction"
            );
        }
        let outcome = response.headers().get(OUTCOME);
        match outcome.map(|outcome| outcome.as_bytes()) {
            _ if !status.is_success() => {
                panic!("the delivery was answered with {status}, outcome {outcome:?}")
            }
            None => panic!(
                "the delivery was answered with {status}, but not by IdempotentWebhook: \
                 is the layer on this route?"
            ),
            Some(b"processed") => processed += 1,
            Some(_) => {}
        }
    }
    processed
}
