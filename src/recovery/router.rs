//! The application's router, to which kept deliveries are sent.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use tower_service::Service;

use crate::tasks_and_errors::panic::{catch_panic, into_message};

pub(super) type Prepare = Arc<dyn Fn(&mut Parts) + Send + Sync>;
type Sent = Pin<Box<dyn Future<Output = Option<StatusCode>> + Send>>;
type SendRequest = Arc<dyn Fn(Request<Full<Bytes>>) -> Sent + Send + Sync>;

#[derive(Clone)]
pub(super) struct Router {
    send: SendRequest,
    prepare: Option<Prepare>,
}

impl Router {
    pub(super) fn new<S, R>(service: S, prepare: Option<Prepare>) -> Self
    where
        S: Service<Request<Full<Bytes>>, Response = Response<R>> + Clone + Send + 'static,
        S::Future: Send,
        S::Error: Send,
        R: Send,
    {
        // A service need not be `Sync`.
        let service = Mutex::new(service);
        let send = move |request| -> Sent {
            let mut service = service
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            Box::pin(async move {
                std::future::poll_fn(|cx| service.poll_ready(cx))
                    .await
                    .ok()?;
                let response = service.call(request).await.ok()?;
                Some(response.status())
            })
        };
        Self {
            send: Arc::new(send),
            prepare,
        }
    }

    /// Sends a request. Returns the status of the answer, if there was one.
    pub(super) async fn send(&self, request: Request<Full<Bytes>>) -> Option<StatusCode> {
        let sent = catch_panic(async {
            let (mut head, body) = request.into_parts();
            if let Some(prepare) = &self.prepare {
                prepare(&mut head);
            }
            (self.send)(Request::from_parts(head, body)).await
        });
        match sent.await {
            Ok(status) => status,
            Err(payload) => {
                let message = into_message(payload);
                tracing::error!(
                    message,
                    "webhook recovery: a middleware or `Recovery::prepare_request` panicked"
                );
                None
            }
        }
    }
}
