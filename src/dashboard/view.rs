//! The content of a page: for a browser as HTML, for a program as JSON.

use axum::body::Body;
use axum::response::Response;
use http::header::{CONTENT_TYPE, HeaderValue};
use maud::Markup;
use serde::Serialize;

use super::Access;

/// The data of a page. Serialized as JSON, it is the response of the API.
pub(super) trait View: Serialize {
    fn title(&self) -> String;

    fn content(&self, viewer: &Access) -> Markup;

    /// The interval in seconds at which the page reloads while somebody looks at it.
    fn refresh(&self) -> Option<u32> {
        None
    }
}

pub(super) fn json(value: &impl Serialize) -> Response {
    // Serialization cannot fail, because all maps have string keys.
    let json = serde_json::to_vec_pretty(value).unwrap_or_default();
    let mut response = Response::new(Body::from(json));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
