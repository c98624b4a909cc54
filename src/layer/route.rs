//! The address of a request as the log may show it, although anybody can send the request.

use http::request::Parts;

/// More than any registered method has.
#[cfg(feature = "axum")]
const MAX_METHOD: usize = 20;

/// The path of the route as the application has written it, such as `/webhooks/{tenant}`. The sender's text in that
/// place may be a token, and has no bound.
#[cfg(feature = "axum")]
pub(crate) fn route_of(head: &Parts) -> Option<&str> {
    let route = head.extensions.get::<axum::extract::MatchedPath>();
    route.map(axum::extract::MatchedPath::as_str)
}

/// Without a router nothing knows it.
#[cfg(not(feature = "axum"))]
pub(crate) fn route_of(_: &Parts) -> Option<&str> {
    None
}

/// The method, cut to a length that any real one has.
#[cfg(feature = "axum")]
pub(crate) fn method_of(head: &Parts) -> &str {
    let method = head.method.as_str();
    // It is a token, so that each byte is a character.
    method.get(..MAX_METHOD).unwrap_or(method)
}
