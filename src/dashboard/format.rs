//! The two formats of a page: HTML for browsers, and JSON for programs.

use axum::extract::Request;
use axum::response::Response;
use http::request::Parts;

use super::Access;
use super::error::PageError;
use super::html::Layout;
use super::view::{View, json};

/// The path prefix under which pages are served as JSON.
const API: &str = "api/";

/// The format that a request asks for: an HTML page, or the same data as JSON.
#[derive(Clone, Debug)]
pub(super) enum Format {
    Page(Layout),
    Json,
}

impl Format {
    pub(super) fn of(request: &Request) -> Self {
        match page_name(request.uri().path()).strip_prefix(API) {
            Some(_) => Self::Json,
            None => Self::Page(Layout::of(request)),
        }
    }

    pub(super) fn answer(self, view: &impl View, viewer: &Access) -> Response {
        match self {
            Self::Page(layout) => layout
                .refreshed(view.refresh())
                .page(&view.title(), view.content(viewer)),
            Self::Json => json(view),
        }
    }

    pub(super) fn error(&self, error: PageError) -> Response {
        match self {
            Self::Page(layout) => error.into_page(layout),
            Self::Json => error.into_json(),
        }
    }
}

/// The name of the requested page, in either format.
pub(super) fn page_of(head: &Parts) -> &str {
    let name = page_name(head.uri.path());
    name.strip_prefix(API).unwrap_or(name)
}

fn page_name(path: &str) -> &str {
    path.trim_start_matches('/')
}
