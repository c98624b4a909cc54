//! What stands before every page: the right to see it, where an action comes from, and the headers
//! that keep a browser from doing anything else.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderName, HeaderValue, ORIGIN, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::request::Parts;
use http::{HeaderMap, Uri};

use super::Shared;
use super::assets::Asset;
use super::error::PageError;
use super::html::Layout;

/// No inline code, no inline style, nothing from elsewhere, in no frame.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
     form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
);

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// A middleware around all routes, those that do not exist included.
pub(super) async fn guard(
    State(shared): State<Arc<Shared>>,
    request: Request,
    next: Next,
) -> Response {
    let layout = Layout::of(&request);
    let mut response = match asset(&request) {
        // For everybody: the page that refuses has a style, too, and what is in each copy of this crate
        // is no secret.
        Some(asset) => asset.response(),
        None => match admit(&shared, request).await {
            Ok(request) => next.run(request).await,
            Err(error) => error.into_page(&layout),
        },
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
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

/// Adds the [`Access`](super::Access) to a request that has any.
async fn admit(shared: &Shared, request: Request) -> Result<Request, PageError> {
    let (mut head, body) = request.into_parts();
    let Some(authorizer) = &shared.authorizer else {
        tracing::error!(
            "the webhook dashboard has no authorizer, so nobody may see it: set `authorize`, or \
             `authenticated_in_front`"
        );
        return Err(PageError::forbidden("Nobody may see this dashboard yet."));
    };
    let access = authorizer.access(&head).await;
    if !access.may_read() {
        return Err(PageError::forbidden("You may not see this dashboard."));
    }
    if !head.method.is_safe() {
        if !is_same_origin(&head) {
            return Err(PageError::forbidden(
                "This request came from another site, so nothing was done.",
            ));
        }
        if !access.may_operate() {
            return Err(PageError::forbidden(
                "You may look, but not change anything.",
            ));
        }
    }
    head.extensions.insert(access);
    Ok(Request::from_parts(head, body))
}

/// Whether a page of this site has sent the request. Browsers set both headers themselves; where a
/// browser is too old for the first one, it sends `Origin` with every form that is posted.
fn is_same_origin(head: &Parts) -> bool {
    match single(&head.headers, &SEC_FETCH_SITE) {
        Some(site) => site == "same-origin",
        None if head.headers.contains_key(SEC_FETCH_SITE) => false,
        None => is_from_our_host(head),
    }
}

fn is_from_our_host(head: &Parts) -> bool {
    let Some(origin) = single(&head.headers, &ORIGIN) else {
        return false;
    };
    let Some(origin) = origin.parse::<Uri>().ok().and_then(|uri| {
        let authority = uri.authority()?;
        Some(authority.as_str().to_ascii_lowercase())
    }) else {
        return false;
    };
    // HTTP/2 has the host in the URI.
    let host = head.uri.authority().map(|authority| authority.as_str());
    let host = host.or_else(|| single(&head.headers, &HOST));
    host.is_some_and(|host| host.eq_ignore_ascii_case(&origin))
}

/// The value of a header that occurs once.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}
