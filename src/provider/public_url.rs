//! The URL that the provider calls. Behind a proxy, it differs from the URL that the server sees.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use http::Uri;
use http::request::Parts;

/// The public base of an endpoint's URL: scheme, host, and optionally a port and a path that a
/// proxy removes.
///
/// [`Provider::public_url`](crate::Provider::public_url) takes it. The path and the query of a
/// request are appended to it unchanged.
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
/// If the provider calls the URL with a user and a password, and signs them, include them:
/// `https://user:password@example.com`. `Debug` does not show them.
#[derive(Clone)]
pub struct PublicUrl(Arc<str>);

impl PublicUrl {
    /// The URL that the provider called.
    pub(super) fn url_of(&self, head: &Parts) -> String {
        format!("{}{}", self.0, path_and_query(head))
    }

    /// The base without the user and the password.
    pub(crate) fn redacted(&self) -> String {
        redacted(&self.0)
    }
}

/// An address without the user and the password.
pub(crate) fn redacted(address: &str) -> String {
    match (address.split_once("://"), address.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://redacted@{rest}"),
        _ => address.to_owned(),
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
        if !has_usable_port(&uri) {
            return Err(PublicUrlError("its port is not a number up to 65535"));
        }
        Ok(Self(text.trim_end_matches('/').into()))
    }
}

/// Whether the port is a number, or missing. `Uri` accepts any text as a port.
fn has_usable_port(uri: &Uri) -> bool {
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let (_, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let port = match host.rsplit_once(']') {
        Some((_, "")) => Some(""),
        Some((_, after)) => after.strip_prefix(':'),
        None => Some(host.split_once(':').map_or("", |(_, port)| port)),
    };
    port.is_some_and(|port| {
        let are_digits = port.bytes().all(|byte| byte.is_ascii_digit());
        are_digits && (port.is_empty() || port.parse::<u16>().is_ok())
    })
}

impl fmt::Debug for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PublicUrl").field(&self.redacted()).finish()
    }
}

/// The error for a text that is not the public base of a URL.
#[derive(Clone, Debug)]
pub struct PublicUrlError(&'static str);

impl fmt::Display for PublicUrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not the public base of a URL: {}", self.0)
    }
}

impl std::error::Error for PublicUrlError {}

/// The path and the query that the provider called, including the path of the public URL if one is
/// set.
pub(super) fn public_path_and_query(base: Option<&PublicUrl>, head: &Parts) -> String {
    let received = path_and_query(head);
    match base {
        None => received.to_owned(),
        Some(PublicUrl(base)) => {
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

/// The URI as the server received it. In the URI of the request, `Router::nest` has removed its
/// prefix.
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

    fn head(uri: &str) -> Result<Parts, http::Error> {
        Ok(Request::post(uri).body(())?.into_parts().0)
    }

    #[test]
    fn a_public_url_has_a_scheme_and_a_host_and_no_query() {
        for right in [
            "https://example.com",
            "http://localhost:8080",
            "https://example.com/hooks/",
            "https://user:pass@example.com",
            "https://[::1]",
            "https://[::1]:80",
            "https://example.com:/",
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
            "https://example.com:84x3",
            "https://example.com:99999",
            "https://user:password@example.com:x",
            "https://[::1]x",
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
        let base: PublicUrl = "https://example.com:8443/hooks/".parse()?;
        for (uri, url) in [
            ("/", "https://example.com:8443/hooks/"),
            ("/a%2Fb/?", "https://example.com:8443/hooks/a%2Fb/?"),
            ("/a?b=%7e&b=+", "https://example.com:8443/hooks/a?b=%7e&b=+"),
            ("http://10.0.0.1/a?b", "https://example.com:8443/hooks/a?b"),
        ] {
            assert_eq!(base.url_of(&head(uri)?), url);
        }
        Ok(())
    }

    #[cfg(feature = "axum")]
    #[test]
    fn the_prefix_of_a_nested_router_is_part_of_the_path() -> Result<(), Box<dyn std::error::Error>>
    {
        let mut head = head("/twilio?a=b")?;
        let original = axum::extract::OriginalUri("/hooks/twilio?a=b".parse()?);
        head.extensions.insert(original);
        let base: PublicUrl = "https://example.com".parse()?;
        assert_eq!(base.url_of(&head), "https://example.com/hooks/twilio?a=b");
        assert_eq!(
            public_path_and_query(Some(&base), &head),
            "/hooks/twilio?a=b"
        );
        let base: PublicUrl = "https://example.com/api/".parse()?;
        assert_eq!(
            public_path_and_query(Some(&base), &head),
            "/api/hooks/twilio?a=b"
        );
        Ok(())
    }
}
