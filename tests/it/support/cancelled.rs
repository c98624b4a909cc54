//! A future that is dropped before it is complete.

use std::pin::Pin;
use std::task::{Context, Poll};

/// Polls a future at most this many times, and drops it.
pub async fn cancelled_after<F: Future>(polls: u32, future: F) -> Option<F::Output> {
    struct Cancelled<F>(Pin<Box<F>>, u32);
    impl<F: Future> Future for Cancelled<F> {
        type Output = Option<F::Output>;
        fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
            if self.1 == 0 {
                return Poll::Ready(None);
            }
            self.1 -= 1;
            match self.0.as_mut().poll(cx) {
                Poll::Ready(output) => Poll::Ready(Some(output)),
                Poll::Pending if self.1 == 0 => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            }
        }
    }
    Cancelled(Box::pin(future), polls).await
}
