//! The route and method of a request, in a form that is safe to log although anybody can send the request.

use http::request::Parts;

/// The longest method that is logged, in bytes. Every registered method is shorter.
#[cfg(feature = "axum")]
const MAX_METHOD: usize = 20;

/// The path of the route as the application has written it, such as `/webhooks/{tenant}`. The path of the request is
/// not safe to log: the part in place of `{tenant}` may be a token, and its length has no limit.
#[cfg(feature = "axum")]
pub(crate) fn route_of(head: &Parts) -> Option<&str> {
    let route = head.extensions.get::<axum::extract::MatchedPath>();
    route.map(axum::extract::MatchedPath::as_str)
}

/// Without a router, the route is unknown.
#[cfg(not(feature = "axum"))]
pub(crate) fn route_of(_: &Parts) -> Option<&str> {
    None
}

/// The method, cut off after `MAX_METHOD` bytes. Every registered method is shorter.
#[cfg(feature = "axum")]
pub(crate) fn method_of(head: &Parts) -> &str {
    let method = head.method.as_str();
    // A method is an HTTP token, so each byte is a character.
    method.get(..MAX_METHOD).unwrap_or(method)
}
