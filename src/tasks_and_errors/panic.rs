//! Catches panics of the application: in signature schemes and lookups, handlers, hooks, and work after a commit.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// The payload of a caught panic.
pub(crate) type Payload = Box<dyn Any + Send>;

/// Catches a panic in any poll, so that the transaction can still be rolled back.
pub(crate) async fn catch_panic<F: Future>(future: F) -> Result<F::Output, Payload> {
    let mut future = pin!(future);
    poll_fn(|cx| {
        // Unwind safe: the future is not polled again after a panic, only dropped.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(poll) => poll.map(Ok),
            Err(payload) => Poll::Ready(Err(payload)),
        }
    })
    .await
}

/// Catches a panic of a synchronous call. Values that the call borrowed must not be used after a panic.
pub(crate) fn catch<T>(work: impl FnOnce() -> T) -> Result<T, Payload> {
    catch_unwind(AssertUnwindSafe(work))
}

/// Drops a value whose destructor may panic.
pub(crate) fn catch_drop<T>(value: T) -> Result<(), Payload> {
    catch(|| drop(value))
}

/// The message of a panic, whose payload may panic itself when it is dropped.
pub(crate) fn into_message(payload: Payload) -> String {
    let message = message(&*payload).to_owned();
    if let Err(another) = catch_drop(payload) {
        std::mem::forget(another);
    }
    message
}

/// The message of a panic, if it has one.
pub(crate) fn message(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&'static str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
}
