//! The URL that the provider calls, which behind a proxy is not the one that the server sees.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, HeaderName, Uri};

/// The public base of an endpoint's URL: scheme, host, and optionally a port and a path that a
/// proxy removes.
///
/// [`Provider::public_url`](crate::Provider::public_url) takes it. The path and the query of a
/// request are appended to it as they are.
///
/// ```
/// use idempotent_webhook::provider::PublicUrl;
///
/// let url: PublicUrl = "https://hooks.example.com".parse()?;
/// let behind_a_prefix: PublicUrl = "https://example.com:8443/hooks".parse()?;
/// assert!("hooks.example.com".parse::<PublicUrl>().is_err());
/// assert!("https://example.com/?a=b".parse::<PublicUrl>().is_err());
/// # Ok::<(), idempotent_webhook::provider::PublicUrlError>(())
/// ```
///
/// Where the provider calls the URL with a user and a password, and signs them, they are part of
/// it: `https://user:password@example.com`. `Debug` does not show them.
#[derive(Clone)]
pub struct PublicUrl(Arc<str>);

impl PublicUrl {
    /// The URL of a request with this path and query.
    fn join(&self, path_and_query: &str) -> String {
        format!("{}{path_and_query}", self.0)
    }

    /// Without the user and the password.
    fn redacted(&self) -> String {
        match (self.0.split_once("://"), self.0.rsplit_once('@')) {
            (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://redacted@{rest}"),
            _ => self.0.to_string(),
        }
    }
}

impl FromStr for PublicUrl {
    type Err = PublicUrlError;

    fn from_str(text: &str) -> Result<Self, PublicUrlError> {
        let has_scheme = text.starts_with("https://") || text.starts_with("http://");
        if !has_scheme {
            return Err(PublicUrlError("it does not begin with https:// or http://"));
        }
        if text.contains(['?', '#']) {
            return Err(PublicUrlError("it has a query or a fragment"));
        }
        let uri: Uri = text
            .parse()
            .map_err(|_| PublicUrlError("it is not a URL"))?;
        if uri.host().is_none_or(str::is_empty) {
            return Err(PublicUrlError("it has no host"));
        }
        Ok(Self(text.trim_end_matches('/').into()))
    }
}

impl fmt::Debug for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PublicUrl").field(&self.redacted()).finish()
    }
}

/// A text is not the public base of a URL.
#[derive(Clone, Debug)]
pub struct PublicUrlError(&'static str);

impl fmt::Display for PublicUrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not the public base of a URL: {}", self.0)
    }
}

impl std::error::Error for PublicUrlError {}

/// From where the scheme and the host of a request's URL are known.
#[derive(Clone, Debug, Default)]
pub(crate) enum UrlBase {
    #[default]
    Unknown,
    Public(PublicUrl),
    /// `X-Forwarded-Proto`, and `X-Forwarded-Host` or `Host`.
    Forwarded,
}

impl UrlBase {
    /// What the URL of a request is taken to be, for the operator: without its path and its query,
    /// which may have a token.
    pub(crate) fn describe(&self) -> Option<String> {
        match self {
            Self::Unknown => None,
            Self::Public(base) => Some(format!("{}/... (`public_url`)", base.redacted())),
            Self::Forwarded => Some(
                "the one in `X-Forwarded-Proto` and `X-Forwarded-Host` (`trust_forwarded_headers`)"
                    .to_owned(),
            ),
        }
    }

    /// The URL that the provider has called, if the base is known.
    pub(super) fn url_of(&self, head: &Parts) -> Option<String> {
        match self {
            Self::Unknown => None,
            Self::Public(base) => Some(base.join(path_and_query(head))),
            Self::Forwarded => {
                let headers = &head.headers;
                let scheme = first_item(headers, HeaderName::from_static("x-forwarded-proto"))?;
                let host = first_item(headers, HeaderName::from_static("x-forwarded-host"))
                    .or_else(|| first_item(headers, http::header::HOST))
                    .or_else(|| received_uri(head).authority().map(|host| host.as_str()))?;
                let base: PublicUrl = format!("{scheme}://{host}").parse().ok()?;
                Some(base.join(path_and_query(head)))
            }
        }
    }
}

/// The first item of a list in a header, which the proxy next to the provider has written.
fn first_item(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let value = headers.get(name)?.to_str().ok()?;
    value.split(',').next().map(str::trim)
}

/// The path and the query that the provider has called: with the path of the public URL, if it is
/// set.
pub(super) fn public_path_and_query(base: &UrlBase, head: &Parts) -> String {
    let received = path_and_query(head);
    match base {
        UrlBase::Unknown | UrlBase::Forwarded => received.to_owned(),
        UrlBase::Public(PublicUrl(base)) => {
            let after_scheme = base.split_once("://").map_or("", |(_, rest)| rest);
            let prefix = after_scheme.find('/').and_then(|at| after_scheme.get(at..));
            format!("{}{received}", prefix.unwrap_or_default())
        }
    }
}

/// The path and the query of a request, as the server received them.
pub(super) fn path_and_query(head: &Parts) -> &str {
    received_uri(head)
        .path_and_query()
        .map_or("/", |both| both.as_str())
}

/// The URI as the server received it: `Router::nest` removes its prefix from that of the request.
#[cfg(feature = "axum")]
pub(crate) fn received_uri(head: &Parts) -> &Uri {
    let original = head.extensions.get::<axum::extract::OriginalUri>();
    original.map_or(&head.uri, |original| &original.0)
}

#[cfg(not(feature = "axum"))]
pub(crate) fn received_uri(head: &Parts) -> &Uri {
    &head.uri
}

/// The head of a request with the URI as the server received it.
pub(super) fn as_received(head: &Parts) -> Cow<'_, Parts> {
    let received = received_uri(head);
    if *received == head.uri {
        return Cow::Borrowed(head);
    }
    let mut with_prefix = head.clone();
    with_prefix.uri = received.clone();
    Cow::Owned(with_prefix)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn head(uri: &str, headers: &[(&str, &str)]) -> Result<Parts, http::Error> {
        let request = headers
            .iter()
            .fold(Request::post(uri), |request, (name, value)| {
                request.header(*name, *value)
            });
        Ok(request.body(())?.into_parts().0)
    }

    #[test]
    fn a_public_url_has_a_scheme_and_a_host_and_no_query() {
        for right in [
            "https://example.com",
            "http://localhost:8080",
            "https://example.com/hooks/",
            "https://user:pass@example.com",
            "https://[::1]:80",
        ] {
            assert!(right.parse::<PublicUrl>().is_ok(), "{right}");
        }
        for wrong in [
            "",
            "example.com",
            "//example.com",
            "ftp://example.com",
            "https://",
            "https:///path",
            "https://example.com?a",
            "https://example.com#a",
            "https://exa mple.com",
        ] {
            assert!(wrong.parse::<PublicUrl>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn debug_shows_no_password() -> Result<(), PublicUrlError> {
        let url: PublicUrl = "https://user:hunter2@example.com".parse()?;
        assert_eq!(
            format!("{url:?}"),
            r#"PublicUrl("https://redacted@example.com")"#
        );
        Ok(())
    }

    #[test]
    fn the_path_and_the_query_are_appended_as_they_are() -> Result<(), Box<dyn std::error::Error>> {
        let base = UrlBase::Public("https://example.com:8443/hooks/".parse()?);
        for (uri, url) in [
            ("/", "https://example.com:8443/hooks/"),
            ("/a%2Fb/?", "https://example.com:8443/hooks/a%2Fb/?"),
            ("/a?b=%7e&b=+", "https://example.com:8443/hooks/a?b=%7e&b=+"),
            ("http://10.0.0.1/a?b", "https://example.com:8443/hooks/a?b"),
        ] {
            assert_eq!(base.url_of(&head(uri, &[])?).as_deref(), Some(url));
        }
        assert_eq!(UrlBase::Unknown.url_of(&head("/", &[])?), None);
        Ok(())
    }

    #[test]
    fn forwarded_headers_name_the_scheme_and_the_host() -> Result<(), http::Error> {
        let of = |headers: &[(&str, &str)]| -> Result<_, http::Error> {
            Ok(UrlBase::Forwarded.url_of(&head("/a?b", headers)?))
        };
        let proto = ("x-forwarded-proto", "https");
        let outer = ("x-forwarded-host", "example.com, inner");
        let host = ("host", "10.0.0.1");
        let forwarded = of(&[proto, outer, host])?;
        assert_eq!(forwarded.as_deref(), Some("https://example.com/a?b"));
        let direct = of(&[proto, host])?;
        assert_eq!(direct.as_deref(), Some("https://10.0.0.1/a?b"));
        assert_eq!(of(&[outer, host])?, None);
        assert_eq!(of(&[proto])?, None);
        assert_eq!(of(&[proto, ("x-forwarded-host", "a/b?c")])?, None);
        Ok(())
    }

    #[cfg(feature = "axum")]
    #[test]
    fn the_prefix_of_a_nested_router_is_part_of_the_path() -> Result<(), Box<dyn std::error::Error>>
    {
        let mut head = head("/twilio?a=b", &[])?;
        let original = axum::extract::OriginalUri("/hooks/twilio?a=b".parse()?);
        head.extensions.insert(original);
        let base = UrlBase::Public("https://example.com".parse()?);
        let url = base.url_of(&head);
        assert_eq!(url.as_deref(), Some("https://example.com/hooks/twilio?a=b"));
        assert_eq!(public_path_and_query(&base, &head), "/hooks/twilio?a=b");
        let base = UrlBase::Public("https://example.com/api/".parse()?);
        assert_eq!(public_path_and_query(&base, &head), "/api/hooks/twilio?a=b");
        Ok(())
    }
}
