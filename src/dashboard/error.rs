//! Page errors, as HTML or JSON.

use std::io::ErrorKind;

use axum::response::Response;
use http::StatusCode;
use http::header::{ALLOW, HeaderValue};
use maud::html;

use super::html::Layout;
use super::view::json;
use crate::tasks_and_errors::sqlx_error::{is_not_migrated, is_query_canceled};
use crate::transaction::Explained;

/// The reason why a page cannot be shown.
#[derive(Debug)]
pub(super) struct PageError {
    status: StatusCode,
    text: &'static str,
    /// The methods that the address accepts, if it does not accept the method of this request.
    allow: Option<&'static str>,
}

impl PageError {
    const fn new(status: StatusCode, text: &'static str) -> Self {
        Self {
            status,
            text,
            allow: None,
        }
    }

    pub(super) const fn bad_request(text: &'static str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, text)
    }

    pub(super) const fn forbidden(text: &'static str) -> Self {
        Self::new(StatusCode::FORBIDDEN, text)
    }

    pub(super) const fn not_found(text: &'static str) -> Self {
        Self::new(StatusCode::NOT_FOUND, text)
    }

    pub(super) fn method_not_allowed(allow: &'static str) -> Self {
        let text = "This address does not accept such a request.";
        Self {
            allow: Some(allow),
            ..Self::new(StatusCode::METHOD_NOT_ALLOWED, text)
        }
    }

    pub(super) const fn unsupported_media_type(text: &'static str) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text)
    }

    /// The error after a panic.
    pub(super) const fn internal() -> Self {
        let text = "The page failed. The log says why.";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, text)
    }

    pub(super) fn timed_out() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "The database did not answer in time.",
        )
    }

    pub(super) const fn not_authorized_in_time() -> Self {
        let text = "It took too long to check what you may see. Try again.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, text)
    }

    pub(super) fn into_page(self, layout: &Layout) -> Response {
        let title = self.status.canonical_reason().unwrap_or("Error");
        let page = layout
            .clone()
            .without_notice()
            .page(title, html! { p { (self.text) } });
        self.with_head(page)
    }

    pub(super) fn into_json(self) -> Response {
        let answer = json(&serde_json::json!({ "error": self.text }));
        self.with_head(answer)
    }

    fn with_head(self, mut response: Response) -> Response {
        *response.status_mut() = self.status;
        if let Some(allow) = self.allow {
            let allow = HeaderValue::from_static(allow);
            response.headers_mut().insert(ALLOW, allow);
        }
        response
    }
}

impl From<sqlx::Error> for PageError {
    fn from(error: sqlx::Error) -> Self {
        tracing::warn!(
            error = %Explained(&error),
            "the webhook dashboard could not read the database"
        );
        let text = if is_not_migrated(&error) {
            "The tables are missing or older than this version: run idempotent_webhook::migrate."
        } else if is_timeout(&error) {
            return Self::timed_out();
        } else {
            "The database could not be read. The log says why."
        };
        Self::new(StatusCode::SERVICE_UNAVAILABLE, text)
    }
}

/// Whether the database did not answer in time: a statement exceeded its timeout, or no connection
/// was free.
pub(super) fn is_timeout(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::PoolTimedOut => true,
        sqlx::Error::Io(error) => error.kind() == ErrorKind::TimedOut,
        error => is_query_canceled(error),
    }
}
