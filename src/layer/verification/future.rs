//! The future of a response.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Response;

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The response future of the services.
pub struct ResponseFuture<B, E>(BoxFuture<Result<Response<B>, E>>);

impl<B, E> ResponseFuture<B, E> {
    pub(crate) fn new(
        response: impl Future<Output = Result<Response<B>, E>> + Send + 'static,
    ) -> Self {
        Self(Box::pin(response))
    }
}

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
