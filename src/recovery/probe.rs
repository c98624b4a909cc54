//! Checks at startup whether requests to each path reach a layer. (The probes of an open breaker are in `breaker.rs`.)
//! If a layer was added before the routes, or a login is in front of it, nothing fails at startup, and the provider and
//! the operator notice the mistake late.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::Full;
use tokio::time::timeout;

use super::background_task::Place;
use super::router::Router;

/// How long an answer may take.
const LIMIT: Duration = Duration::from_secs(10);

/// Identifies the probe in the logs of whatever answers it in place of a layer.
const HEADER: HeaderName = HeaderName::from_static("x-webhook-probe");

/// The mark of a probe, in the extensions of its request. No request from outside can have it: extensions do not
/// come over the wire, and the type is private. It holds the endpoint of the layer that was reached.
#[derive(Clone, Debug, Default)]
pub(crate) struct Probe(Arc<Mutex<Option<Arc<str>>>>);

impl Probe {
    pub(crate) fn of<B>(request: &Request<B>) -> Option<&Self> {
        request.extensions().get()
    }

    pub(crate) fn reaches(&self, endpoint: &Arc<str>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(endpoint.clone());
    }

    fn reached(&self) -> Option<Arc<str>> {
        let reached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        reached.clone()
    }
}

/// Sends a probe to each of these paths, and warns if no layer of the endpoint answers.
pub(super) async fn probe(router: Router, places: Vec<Place>) {
    for Place { endpoint, path } in places {
        let Ok(uri) = path.parse::<Uri>() else {
            tracing::warn!(
                endpoint = &*endpoint,
                path,
                "not the path of a webhook endpoint"
            );
            continue;
        };
        let probe = Probe::default();
        // Without a layer, the probe reaches a handler of the application or another service, where it must not
        // mean anything.
        let mut request = Request::new(Full::new(Bytes::new()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri;
        let name = HeaderValue::from_static("idempotent-webhook");
        request.headers_mut().insert(HEADER, name);
        request.extensions_mut().insert(probe.clone());
        let answer = timeout(LIMIT, router.send(request)).await;
        let status = answer.unwrap_or_default();
        match probe.reached() {
            Some(reached) if reached == endpoint => {}
            Some(reached) => tracing::warn!(
                endpoint = &*endpoint,
                path,
                reached = &*reached,
                "the webhook layer of another endpoint answers at this path"
            ),
            None => tracing::warn!(
                endpoint = &*endpoint,
                path,
                status = status.map(|status| status.as_u16()),
                "no webhook layer answers at this path: {}",
                why(status)
            ),
        }
    }
}

/// A guess at what has answered in place of the layer, from the status of the answer.
fn why(status: Option<StatusCode>) -> &'static str {
    match status {
        Some(StatusCode::NOT_FOUND) => "there is no such route; is it nested under another prefix?",
        Some(StatusCode::METHOD_NOT_ALLOWED) => "its route does not take POST",
        Some(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
            "a middleware in front refuses it, such as a login"
        }
        Some(status) if status.is_redirection() => {
            "the request is redirected, as by a login or because of a slash at the end; providers do not follow \
             redirects"
        }
        Some(_) => {
            "something else has answered, such as the handler itself: is the layer applied to this route, after it was \
             added?"
        }
        None => "the service has failed, or has not answered in time",
    }
}
