//! Sends a request to the layer, without a server.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use idempotent_webhook::VerifiedWebhook;
use tokio::runtime::{Builder, Runtime};
use tower::{Layer, ServiceExt, service_fn};

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let runtime = Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime")
});

/// Whether the layer calls its handler.
pub fn is_handled(layer: &VerifiedWebhook, request: Request<Bytes>) -> bool {
    let is_called = Arc::new(AtomicBool::new(false));
    let called = is_called.clone();
    let handler = service_fn(move |_: Request<Full<Bytes>>| {
        called.store(true, Ordering::Relaxed);
        async { Ok::<_, Infallible>(Response::new(Full::new(Bytes::new()))) }
    });
    let response = layer.layer(handler).oneshot(request.map(Full::new));
    let Ok(response) = RUNTIME.block_on(response);
    let is_handled = is_called.load(Ordering::Relaxed);
    assert_eq!(
        response.status().is_success() && is_handled,
        is_handled,
        "{response:?}"
    );
    is_handled
}
