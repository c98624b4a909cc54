//! Refuses requests that another site makes a browser send (CSRF), and protects actions from clicks that started on
//! another site.

use http::HeaderMap;
use http::header::{CONTENT_TYPE, HeaderName, ORIGIN, REFERER};
use http::request::Parts;

use super::error::PageError;
use super::format::Format;
use super::origins::{Site, single};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

const FOREIGN: PageError =
    PageError::forbidden("This request came from another site, so nothing was done.");

/// Returns whether the response may show actions, or an error if another site has sent a request that changes
/// something.
pub(super) fn check(site: &Site, head: &Parts, format: &Format) -> Result<bool, PageError> {
    match (head.method.is_safe(), format) {
        // JSON contains nothing to click.
        (true, Format::Json) => Ok(true),
        // The second click of a double click that started on another site may land on this page, so it shows no actions
        // then.
        (true, Format::Page(_)) => Ok(site.has_led_here(head)),
        (false, _) if Site::is_foreign(head) => Err(FOREIGN),
        (false, Format::Json) if is_json(head) => Ok(true),
        (false, Format::Json) => Err(PageError::unsupported_media_type(
            "The body must be JSON, with the content type application/json.",
        )),
        (false, Format::Page(_)) if site.has_sent(head) => Ok(true),
        (false, Format::Page(_)) => Err(FOREIGN),
    }
}

impl Site {
    /// Whether a page of the dashboard has sent this form or script request. Browsers themselves set `Sec-Fetch-Site`
    /// and `Origin`. Over plain HTTP, they send `Sec-Fetch-Site` only to a server on the same machine.
    fn has_sent(&self, head: &Parts) -> bool {
        match fetch_site(&head.headers) {
            FetchSite::Is(site) => site == "same-origin",
            FetchSite::Unclear => false,
            FetchSite::Missing => {
                single(&head.headers, &ORIGIN).is_some_and(|origin| self.is_ours(origin, head))
            }
        }
    }

    /// Whether a browser reports that another site has sent the request.
    fn is_foreign(head: &Parts) -> bool {
        match fetch_site(&head.headers) {
            FetchSite::Is(site) => site != "same-origin" && site != "none",
            FetchSite::Unclear => true,
            FetchSite::Missing => false,
        }
    }

    /// Whether the reader came from a page of the dashboard, or has entered the address. If the browser does not report
    /// this, the `Referer` must be a page of the dashboard.
    fn has_led_here(&self, head: &Parts) -> bool {
        match fetch_site(&head.headers) {
            FetchSite::Is(site) => site == "same-origin" || site == "none",
            FetchSite::Unclear => false,
            FetchSite::Missing => {
                single(&head.headers, &REFERER).is_some_and(|page| self.is_ours(page, head))
            }
        }
    }
}

/// What the browser reports about the site that a request comes from.
enum FetchSite<'a> {
    Is(&'a str),
    Unclear,
    Missing,
}

fn fetch_site(headers: &HeaderMap) -> FetchSite<'_> {
    match single(headers, &SEC_FETCH_SITE) {
        Some(site) => FetchSite::Is(site),
        None if headers.contains_key(SEC_FETCH_SITE) => FetchSite::Unclear,
        None => FetchSite::Missing,
    }
}

/// Whether the body is declared as JSON. No form can send this type, and a page of another site can do so only if the
/// server allows it (CORS), which the dashboard never does.
fn is_json(head: &Parts) -> bool {
    let mut types = head.headers.get_all(CONTENT_TYPE).iter();
    let (Some(value), None) = (types.next(), types.next()) else {
        return false;
    };
    let essence = value.to_str().unwrap_or_default().split(';').next();
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"))
}
