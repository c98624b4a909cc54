//! The frame of every page.

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http::header::{CONTENT_TYPE, HeaderValue};
use maud::{DOCTYPE, Markup, html};

use crate::dashboard::assets;

/// The pages in the menu.
const MENU: [(&str, &str); 4] = [
    ("overview", "Overview"),
    ("deliveries", "Deliveries"),
    ("lookup", "Look up"),
    ("actions", "Actions"),
];

/// What the frame of a page needs to know of its request.
#[derive(Clone, Debug)]
pub(in crate::dashboard) struct Layout {
    /// The last segment of the path, which is the name of the page.
    page: String,
    /// From this address to those of the pages. Empty, unless it is deeper than any page is.
    up: String,
    refresh: Option<u32>,
}

impl Layout {
    pub(in crate::dashboard) fn of(request: &Request) -> Self {
        let path = request.uri().path().trim_start_matches('/');
        let page = path.rsplit('/').next().unwrap_or_default();
        Self {
            page: page.to_owned(),
            up: "../".repeat(path.matches('/').count()),
            refresh: None,
        }
    }

    /// A page that is loaded again after some seconds, as long as somebody looks at it.
    pub(in crate::dashboard) fn refreshed(mut self, seconds: u32) -> Self {
        self.refresh = Some(seconds);
        self
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
                            @for (page, name) in MENU {
                                a href={ (up) (page) }
                                    aria-current=[self.is_at(page).then_some("page")]
                                {
                                    (name)
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
