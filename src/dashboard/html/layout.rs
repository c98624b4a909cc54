//! The layout of every page, around its content.

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http::header::{CONTENT_TYPE, HeaderValue};
use maud::{DOCTYPE, Markup, html};

use crate::dashboard::page_list::menu;
use crate::dashboard::{Access, assets};

/// Marks a request from a reader who has come from another site. The page shows no actions until the reader asks for
/// them.
#[derive(Clone, Copy, Debug)]
pub(in crate::dashboard) struct HeldBack;

/// What the layout of a page needs to know about the request.
#[derive(Clone, Debug)]
pub(in crate::dashboard) struct Layout {
    /// The last segment of the path, which is the name of the page.
    page: String,
    /// The relative path from this address to the pages. It is empty unless the address has more segments than any
    /// page.
    up: String,
    refresh: Option<u32>,
    /// The relative address of this page, if its actions are not shown yet.
    held_back: Option<String>,
    sees_all_tenants: bool,
}

impl Layout {
    pub(in crate::dashboard) fn of(request: &Request) -> Self {
        let path = request.uri().path().trim_start_matches('/');
        let page = path.rsplit('/').next().unwrap_or_default();
        Self {
            page: page.to_owned(),
            up: "../".repeat(path.matches('/').count()),
            refresh: None,
            held_back: request
                .extensions()
                .get()
                .map(|HeldBack| match request.uri().query() {
                    // With `./`, the address never leads to another scheme or host, regardless of the page's name.
                    Some(query) => format!("./{page}?{query}"),
                    None => format!("./{page}"),
                }),
            sees_all_tenants: request
                .extensions()
                .get()
                .is_none_or(|access: &Access| access.tenants().is_none()),
        }
    }

    /// Makes the page reload after some seconds, as long as somebody looks at it. While the actions of a page are held
    /// back, it does not reload: the request of the page's script would come from this site, so the response would
    /// contain the actions.
    pub(in crate::dashboard) fn refreshed(mut self, seconds: Option<u32>) -> Self {
        self.refresh = seconds.filter(|_| !self.is_held_back());
        self
    }

    /// Leaves out the notice about actions, for a page without actions.
    pub(in crate::dashboard) fn without_notice(mut self) -> Self {
        self.held_back = None;
        self
    }

    pub(in crate::dashboard) fn is_held_back(&self) -> bool {
        self.held_back.is_some()
    }

    pub(in crate::dashboard) fn page(&self, title: &str, content: Markup) -> Response {
        let up = &self.up;
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    meta name="robots" content="noindex";
                    title { (title) " · Webhooks" }
                    link rel="icon" href={ (up) (assets::ICON.name) };
                    link rel="stylesheet" href={ (up) (assets::STYLE.name) };
                    script src={ (up) (assets::SCRIPT.name) } defer {}
                }
                body data-refresh=[self.refresh] {
                    a.skip href="#main" { "Skip to the content" }
                    header.top {
                        nav aria-label="Pages" {
                            @for (page, title) in menu(self.sees_all_tenants) {
                                a href={ (up) (page) }
                                    aria-current=[self.is_at(page).then_some("page")]
                                {
                                    (title)
                                }
                            }
                        }
                        form.search action={ (up) "lookup" } role="search" {
                            input type="search" name="ids" placeholder="Delivery id"
                                aria-label="Delivery id" autocomplete="off" spellcheck="false";
                            button { "Look up" }
                        }
                    }
                    main #main tabindex="-1" {
                        h1 { (title) }
                        @if let Some(address) = &self.held_back {
                            p.notice {
                                "You have come from another site, so nothing can be changed here yet. "
                                a href=(address) { "Show the actions" }
                            }
                        }
                        (content)
                    }
                }
            }
        };
        let mut response = Response::new(Body::from(page.into_string()));
        response.headers_mut().insert(
            CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        );
        response
    }

    fn is_at(&self, page: &str) -> bool {
        self.page == page
    }
}
