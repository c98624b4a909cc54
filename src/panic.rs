//! Panics in code that is not the crate's own, caught where they happen.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// What somebody else's code panicked with.
pub(crate) type Payload = Box<dyn Any + Send>;

/// Catches a panic at any poll, so that what was begun can still be ended in order.
pub(crate) async fn catch_panic<F: Future>(future: F) -> Result<F::Output, Payload> {
    let mut future = pin!(future);
    poll_fn(|cx| {
        // What the panic has left half-done is never looked at: the future is dropped.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(poll) => poll.map(Ok),
            Err(payload) => Poll::Ready(Err(payload)),
        }
    })
    .await
}

/// Drops a value that is not the crate's own.
pub(crate) fn catch_drop<T>(value: T) -> Result<(), Payload> {
    catch_unwind(AssertUnwindSafe(|| drop(value)))
}

/// The text of a panic, as far as it has one.
pub(crate) fn message(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&'static str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
}
