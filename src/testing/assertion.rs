//! The assertion that a handler is idempotent.

use std::fmt::Debug;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tower_service::Service;

use super::TestDelivery;

/// How many copies are sent at the same moment.
const COPIES: usize = 5;

/// Asserts that the effects of a delivery happen once, however often it is sent.
///
/// `effects` counts them, by a query of the test's own: for example the rows of a table to
/// which the handler writes. The delivery is sent
///
/// 1. once, under its own id, to learn how many effects it has: at least one;
/// 2. under a fresh id, five times at the same moment: as many effects once more;
/// 3. once more under either id: no further effects.
///
/// Each must be answered with 2xx.
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
    let fresh = delivery.clone().id(format!("{}-again", delivery.sent_id()));
    let mut before = effects().await;
    let mut happened = async || {
        let after = effects().await;
        after - std::mem::replace(&mut before, after)
    };

    send(service, delivery, 1).await;
    let once = happened().await;
    if once <= 0 {
        panic!(
            "the delivery {:?} had {once} effects: it was processed before, or the query does \
             not count what the handler does",
            delivery.sent_id()
        );
    }
    send(service, &fresh, COPIES).await;
    let at_once = happened().await;
    if at_once != once {
        panic!(
            "a delivery has {once} effects, but one that was sent {COPIES} times at once had \
             {at_once}"
        );
    }
    for processed in [delivery, &fresh] {
        send(service, processed, 1).await;
        let again = happened().await;
        if again != 0 {
            panic!("a delivery that had been processed was sent again and had {again} effects");
        }
    }
}

/// Sends copies at the same moment.
#[expect(clippy::panic, reason = "an assertion panics")]
async fn send<S, R>(service: &S, delivery: &TestDelivery, copies: usize)
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
    for sent in sending {
        match sent.await {
            Ok(Ok(response)) if response.status().is_success() => {}
            Ok(Ok(response)) => panic!(
                "the delivery {:?} was answered with {}",
                delivery.sent_id(),
                response.status()
            ),
            Ok(Err(error)) => panic!("the delivery {:?} failed: {error:?}", delivery.sent_id()),
            Err(error) => panic!("the delivery {:?} panicked: {error}", delivery.sent_id()),
        }
    }
}
