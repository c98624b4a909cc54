//! The routes of all pages, and their responses as HTML or JSON.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{OriginalUri, Request, State};
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use axum::routing::any;
use http::header::{HeaderName, HeaderValue, LOCATION};
use http::request::Parts;
use http::{Method, StatusCode};
use tracing::Instrument;

use super::error::PageError;
use super::format::{Format, page_of};
use super::guard::guard;
use super::operate::{act, confirm};
use super::page_list::{Entry, PAGES, Page, Right, Takes, menu};
use super::pages::{
    action_progress, actions, deliveries, delivery, endpoint, lookup, overview, rejected, status,
    why,
};
use super::params::Params;
use super::view::json;
use super::{Access, Shared, rows};

/// The largest form, in bytes.
const MAX_FORM: usize = 1024 * 1024;

/// The longest time that a page may take. Each of its statements has its own limit, so if a page takes longer than
/// this, Postgres no longer responds.
const PAGE_TIMEOUT: Duration = Duration::from_secs(30);

/// The header with the prefix that a proxy has stripped from the path.
const X_FORWARDED_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");

/// All pages are on one level, so that relative links work under any prefix.
pub(super) fn router<S: Clone + Send + Sync + 'static>(shared: Arc<Shared>) -> Router<S> {
    // The wildcard route is not a fallback, because `Router::nest` drops the fallback of a nested router.
    Router::new()
        .route("/", any(serve))
        .route("/{*page}", any(serve))
        .layer(from_fn_with_state(shared.clone(), guard))
        .with_state(shared)
}

async fn serve(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let format = Format::of(&request);
    match answer(shared, format.clone(), request).await {
        Ok(response) => response,
        Err(error) => format.error(error),
    }
}

async fn answer(
    shared: Arc<Shared>,
    format: Format,
    request: Request,
) -> Result<Response, PageError> {
    let (head, body) = request.into_parts();
    let is_post = head.method == Method::POST;
    if !is_post && head.method != Method::GET && head.method != Method::HEAD {
        return Err(PageError::method_not_allowed("GET, HEAD, POST"));
    }
    let form = match is_post {
        true => to_bytes(body, MAX_FORM).await,
        false => Ok(Default::default()),
    };
    let form = form.map_err(|_| PageError::bad_request("The form is too large, or incomplete."))?;
    let query = head.uri.query().unwrap_or_default();
    let params = match format {
        Format::Json if is_post => Params::parse_json(query, &form)?,
        Format::Json | Format::Page(_) => Params::parse(query, &form)?,
    };
    let place = shared.database.place().await?;
    // The page is made in a task, so that it is completed even if the browser closes the connection. Until then, the
    // task holds the place, which is the permit to use a database connection.
    let made = tokio::spawn(
        async move {
            let _place = place;
            route(&shared, format, head, is_post, params).await
        }
        .in_current_span(),
    );
    made.await.map_err(|error| {
        tracing::error!(%error, "a page of the webhook dashboard panicked");
        PageError::internal()
    })?
}

async fn route(
    shared: &Arc<Shared>,
    format: Format,
    head: Parts,
    is_post: bool,
    params: Params,
) -> Result<Response, PageError> {
    let Some(access) = head.extensions.get::<Access>() else {
        return Err(PageError::forbidden("You may not see this dashboard."));
    };
    let name = page_of(&head);
    if name.is_empty() && !is_post {
        return Ok(to_first_page(&head, access));
    }
    let entry = PAGES.iter().find(|entry| entry.name == name);
    let entry = entry
        .filter(|entry| !entry.is_for_programs || matches!(format, Format::Json))
        .ok_or(NO_SUCH_PAGE)?;
    entry.check_method(is_post)?;
    if let (Page::Confirm, Format::Page(layout)) = (entry.page, &format)
        && layout.is_held_back()
    {
        return Ok(confirm::first(layout));
    }
    entry.check(access)?;
    let page = page(shared, access, entry.page, format, &params);
    if entry.takes == Takes::Post {
        // An action as a whole has no time limit, because each of its transactions has one.
        return page.await;
    }
    let page = tokio::time::timeout(PAGE_TIMEOUT, page).await;
    page.unwrap_or_else(|_| Err(PageError::timed_out()))
}

const NO_SUCH_PAGE: PageError = PageError::not_found("There is no such page.");

impl Entry {
    fn check_method(&self, is_post: bool) -> Result<(), PageError> {
        match (self.takes, is_post) {
            (Takes::Get, true) => Err(PageError::method_not_allowed("GET, HEAD")),
            (Takes::Post, false) => Err(PageError::method_not_allowed("POST")),
            _ => Ok(()),
        }
    }

    /// Checks that the viewer may see the page. Parts of the page may need more rights.
    fn check(&self, access: &Access) -> Result<(), PageError> {
        match self.needs {
            Right::SeePayloads if !access.may_see_payloads() => {
                Err(PageError::forbidden("You may not see payloads."))
            }
            Right::Operate if !access.may_operate() => Err(PageError::forbidden(
                "You may look, but not change anything.",
            )),
            _ if self.is_of_all_tenants => rows::not_by_tenant(access),
            _ => Ok(()),
        }
    }
}

async fn page(
    shared: &Arc<Shared>,
    access: &Access,
    page: Page,
    format: Format,
    params: &Params,
) -> Result<Response, PageError> {
    Ok(match page {
        Page::Overview => format.answer(&overview::read(shared, access).await?, access),
        Page::Endpoint => format.answer(&endpoint::read(shared, access, params).await?, access),
        Page::Deliveries => format.answer(&deliveries::read(shared, access, params).await?, access),
        Page::Delivery => format.answer(&delivery::read(shared, access, params).await?, access),
        Page::Payload => delivery::payload(shared, access, params).await?,
        #[cfg(feature = "testing")]
        Page::Capture => delivery::capture::read(shared, access, params).await?,
        #[cfg(not(feature = "testing"))]
        Page::Capture => return Err(NO_SUCH_PAGE),
        Page::Rejected => format.answer(&rejected::read(shared, access, params).await?, access),
        Page::Lookup => format.answer(&lookup::read(shared, access, params).await?, access),
        Page::Actions => format.answer(&actions::read(shared, access, params).await?, access),
        Page::Action => format.answer(
            &action_progress::read(shared, access, params).await?,
            access,
        ),
        Page::Confirm => format.answer(&confirm::read(shared, access, params).await?, access),
        Page::Act => act::act(shared, access, params, &format).await?,
        Page::Cancel => act::cancel(shared, access, params, &format).await?,
        Page::Status => json(&status::read(shared, access, params).await?),
        Page::Why => json(&why::read(shared, access, params).await?),
    })
}

/// Redirects to the first page. The first page has a name like every other page, so that the same relative links work
/// on all pages. The redirect is relative as well, because the prefix that a server behind a proxy sees may differ from
/// the prefix that browsers see. If the requested address is the prefix without a trailing slash, and a proxy strips
/// it, the proxy must send the prefix in `X-Forwarded-Prefix`.
fn to_first_page(head: &Parts, access: &Access) -> Response {
    let mut menu = menu(access.tenants().is_none());
    let page = menu.next().map_or("deliveries", |(name, _)| name);
    let original = head.extensions.get::<OriginalUri>();
    let original = original.map_or(&head.uri, |OriginalUri(uri)| uri).path();
    let last = original.rsplit('/').next().unwrap_or_default();
    let location = match (last, forwarded_prefix(head)) {
        ("", Some(prefix)) => format!("{prefix}/{page}"),
        ("", None) => format!("./{page}"),
        (last, _) => format!("./{last}/{page}"),
    };
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    if let Ok(location) = HeaderValue::try_from(location) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}

/// The prefix from `X-Forwarded-Prefix`. It is ignored unless it is a path, so it can never lead to another host.
fn forwarded_prefix(head: &Parts) -> Option<&str> {
    let prefix = head.headers.get(X_FORWARDED_PREFIX)?.to_str().ok()?;
    let prefix = prefix.trim_end_matches('/');
    let is_path = prefix.starts_with('/')
        && !prefix.starts_with("//")
        && prefix
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte));
    is_path.then_some(prefix)
}
