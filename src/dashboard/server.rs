//! The routes.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{OriginalUri, Request, State};
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use axum::routing::any;
use http::header::{HeaderValue, LOCATION};
use http::{Method, StatusCode};

use super::error::PageError;
use super::guard::guard;
use super::html::Layout;
use super::operate::{act, confirm};
use super::pages::{actions, deliveries, delivery, lookup, overview};
use super::params::Params;
use super::{Access, Shared};

/// The largest form, in bytes.
const MAX_FORM: usize = 1024 * 1024;

/// All pages are on one level, so that relative links work under any prefix.
pub(super) fn router<S: Clone + Send + Sync + 'static>(shared: Arc<Shared>) -> Router<S> {
    // Not a fallback: `Router::nest` forgets that of a router in a router.
    Router::new()
        .route("/", any(serve))
        .route("/{*page}", any(serve))
        .layer(from_fn_with_state(shared.clone(), guard))
        .with_state(shared)
}

async fn serve(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let layout = Layout::of(&request);
    match route(&shared, layout.clone(), request).await {
        Ok(response) => response,
        Err(error) => error.into_page(&layout),
    }
}

async fn route(
    shared: &Arc<Shared>,
    layout: Layout,
    request: Request,
) -> Result<Response, PageError> {
    let (head, body) = request.into_parts();
    let Some(access) = head.extensions.get::<Access>() else {
        return Err(PageError::forbidden("You may not see this dashboard."));
    };
    let original = head.extensions.get::<OriginalUri>();
    let original = original.map_or(&head.uri, |OriginalUri(uri)| uri).path();
    let query = head.uri.query().unwrap_or_default();
    let page = head.uri.path().trim_start_matches('/');
    let is_post = head.method == Method::POST;
    if !is_post && head.method != Method::GET && head.method != Method::HEAD {
        return Err(PageError::method_not_allowed("GET, HEAD, POST"));
    }
    let form = match is_post {
        true => to_bytes(body, MAX_FORM).await,
        false => Ok(Default::default()),
    };
    let form = form.map_err(|_| PageError::bad_request("The form is too large, or broken off."))?;
    let params = Params::parse(query, &form)?;
    let params = &params;
    match (page, is_post) {
        ("", false) => Ok(to_overview(original)),
        ("overview", false) => overview::overview(shared, access, layout).await,
        ("deliveries", false) => deliveries::deliveries(shared, access, layout, params).await,
        ("delivery", false) => delivery::delivery(shared, access, layout, params).await,
        ("payload", false) => delivery::payload(shared, access, params).await,
        ("lookup", false) => lookup::lookup(shared, access, layout, params).await,
        ("actions", false) => actions::actions(shared, layout, params).await,
        ("action", false) => actions::action(shared, access, layout, params).await,
        // A selection may be too long for an address, so it is posted. It changes nothing.
        ("confirm", _) => confirm::confirm(shared, access, layout, params).await,
        ("act", true) => act::act(shared, access, params).await,
        ("cancel", true) => act::cancel(shared, access, params).await,
        ("act" | "cancel", false) => Err(PageError::method_not_allowed("POST")),
        (_, false) => Err(PageError::not_found("There is no such page.")),
        (_, true) => Err(PageError::method_not_allowed("GET, HEAD")),
    }
}

/// The first page has a name as the others do, so that all of them have the same relative links. The
/// redirect is relative as well: the prefix may be another one in front of a proxy.
fn to_overview(original: &str) -> Response {
    let last = original.rsplit('/').next().unwrap_or_default();
    let slash = if last.is_empty() { "" } else { "/" };
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    if let Ok(location) = HeaderValue::try_from(format!("./{last}{slash}overview")) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}
