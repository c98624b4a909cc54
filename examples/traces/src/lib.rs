//! A delivery that fails and is recovered, as one trace.
//!
//! The layer keeps the header `traceparent` with a request. A middleware in front of the layer writes the context of
//! its own span into this header. When recovery runs the request again, the middleware uses that context as the parent.

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::MethodRouter;
use idempotent_webhook::Recovery;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry_http::{HeaderExtractor, HeaderInjector};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Instrument;
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// A request extension that marks the requests that recovery runs again.
#[derive(Clone)]
struct Again;

/// A recovery that marks its requests.
pub fn recovery(pool: sqlx::PgPool) -> Recovery {
    Recovery::new(pool).prepare_request(|head| {
        head.extensions.insert(Again);
    })
}

/// The router of the application, with tracing.
pub fn app(webhook: MethodRouter) -> Router {
    Router::new()
        .route("/webhooks/github", webhook)
        .layer(from_fn(traced))
}

async fn traced(mut request: Request, next: Next) -> Response {
    let span = tracing::info_span!("request", path = request.uri().path());
    let propagator = TraceContextPropagator::new();
    if request.extensions().get::<Again>().is_some() {
        let first = propagator.extract(&HeaderExtractor(request.headers()));
        // This fails if no OpenTelemetry layer is installed. In that case, there is no trace.
        let _ = span.set_parent(first);
    } else {
        // Replaces the header, so that a sender cannot choose the trace.
        let headers = request.headers_mut();
        propagator.inject_context(&span.context(), &mut HeaderInjector(headers));
    }
    next.run(request).instrument(span).await
}
