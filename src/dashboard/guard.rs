//! Guards every page. It checks the host, whether the viewer may see the dashboard at all, and which site sent the
//! request. It also adds the security headers to the response. `routes.rs` checks the right to a single page.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::header::{
    CACHE_CONTROL, HeaderName, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use http::request::Parts;

use super::assets::Asset;
use super::csrf;
use super::error::PageError;
use super::format::Format;
use super::html::HeldBack;
use super::{Access, Shared};
use crate::tasks_and_errors::panic::{self, catch_panic};

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// How long an authorizer may take to look up a session, or to ask the service that stores sessions. Readers, and most
/// proxies, wait longer than this.
const AUTHORIZER_TIMEOUT: Duration = Duration::from_secs(10);

/// A middleware around all routes, even unknown ones.
pub(super) async fn guard(
    State(shared): State<Arc<Shared>>,
    request: Request,
    next: Next,
) -> Response {
    let format = Format::of(&request);
    let mut response = match asset(&request) {
        // Assets are for everybody: the page that refuses access also needs a style, and assets that are in every copy
        // of this crate are not secret.
        Some(asset) => asset.response(),
        None => match admit(&shared, request, &format).await {
            Ok(request) => next.run(request).await,
            Err(error) => format.error(error),
        },
    };
    let headers = response.headers_mut();
    shared.site.add_policy(headers);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    // No window of another site can navigate this one.
    headers.insert(OPENER_POLICY, HeaderValue::from_static("same-origin"));
    // With `no-referrer`, browsers would send `Origin: null` with forms.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

fn asset(request: &Request) -> Option<&'static Asset> {
    let name = request.uri().path().trim_start_matches('/');
    Asset::find(name).filter(|_| request.method().is_safe())
}

/// Adds the [`Access`](super::Access) to a request that may see the dashboard, and refuses other requests.
async fn admit(shared: &Shared, request: Request, format: &Format) -> Result<Request, PageError> {
    let (mut head, body) = request.into_parts();
    if !shared.site.has_host_of(&head) {
        return Err(PageError::forbidden("This is not a host of the dashboard."));
    }
    let mut access = access(shared, &head).await?;
    if !access.may_read() {
        return Err(PageError::forbidden("You may not see this dashboard."));
    }
    let may_act = csrf::check(&shared.site, &head, format)?;
    if !may_act && access.may_operate() {
        head.extensions.insert(HeldBack);
        access = access.without_actions();
    }
    head.extensions.insert(access);
    Ok(Request::from_parts(head, body))
}

async fn access(shared: &Shared, head: &Parts) -> Result<Access, PageError> {
    let Some(authorizer) = &shared.authorizer else {
        tracing::error!(
            "the webhook dashboard has no authorizer, so nobody may see it: set `authorize`, or \
             `authenticated_in_front`"
        );
        return Err(PageError::forbidden("Nobody may see this dashboard yet."));
    };
    let decided = catch_panic(async { authorizer.access(head).await });
    let Ok(decided) = tokio::time::timeout(AUTHORIZER_TIMEOUT, decided).await else {
        tracing::error!("the authorizer of the webhook dashboard did not answer in time");
        return Err(PageError::not_authorized_in_time());
    };
    decided.map_err(|payload| {
        let message = panic::message(&*payload);
        tracing::error!(message, "the authorizer of the webhook dashboard panicked");
        PageError::internal()
    })
}
