//! The address to which requests are sent.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use http::uri::{PathAndQuery, Uri};

/// An address with `http://`, or with `https://` for a canary.
#[derive(Clone)]
pub struct Target {
    uri: Uri,
    host: String,
    /// Whether the address was given with a path.
    has_path: bool,
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rest = text
            .strip_prefix("https://")
            .or_else(|| text.strip_prefix("http://"))
            .ok_or("it must start with http://")?;
        let uri: Uri = text.parse().map_err(|_| "it is not a URL")?;
        let authority = uri.authority().ok_or("it has no host")?;
        if authority.as_str().contains('@') {
            return Err("it has a user name: set a header with --header instead".to_owned());
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let has_path = rest.contains(['/', '?']);
        Ok(Self {
            uri,
            host,
            has_path,
        })
    }
}

impl Target {
    /// Whether the connection uses TLS.
    pub fn has_tls(&self) -> bool {
        self.uri.scheme_str() == Some("https")
    }

    /// The whole URL.
    pub fn url(&self) -> String {
        self.uri.to_string()
    }

    /// The URL that the provider calls, without the path.
    pub fn origin(&self) -> String {
        let scheme = self.uri.scheme_str().unwrap_or("http");
        format!("{scheme}://{}", self.authority())
    }

    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn port(&self) -> u16 {
        self.uri.port_u16().unwrap_or(80)
    }

    /// The host and the port, as they were given.
    pub fn authority(&self) -> &str {
        self.uri
            .authority()
            .map_or("", |authority| authority.as_str())
    }

    pub fn path_and_query(&self) -> &str {
        self.uri.path_and_query().map_or("/", PathAndQuery::as_str)
    }

    /// The same host, with the path of a captured request, unless the user has given another path.
    #[must_use]
    pub fn with_default_path(mut self, captured: &Uri) -> Self {
        if let (false, Some(path)) = (self.has_path, captured.path_and_query()) {
            let mut parts = self.uri.clone().into_parts();
            parts.path_and_query = Some(path.clone());
            self.uri = Uri::from_parts(parts).unwrap_or(self.uri);
        }
        self
    }

    /// Whether the target is this machine, judged by its name or its address.
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.host)
    }
}

/// Whether a host is this machine, judged by its name or its address.
pub fn is_loopback(host: &str) -> bool {
    let address: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    address.is_some_and(|address| address.is_loopback())
        || host == "localhost"
        || host.ends_with(".localhost")
}

/// Leaves out the query, which may contain a secret.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin(), self.uri.path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_told_from_others() -> Result<(), String> {
        for here in ["localhost:3000", "a.localhost", "127.0.0.1", "[::1]:80/a"] {
            assert!(
                format!("http://{here}").parse::<Target>()?.is_loopback(),
                "{here}"
            );
        }
        for elsewhere in ["example.com", "10.0.0.1", "localhost.example.com"] {
            assert!(
                !format!("http://{elsewhere}")
                    .parse::<Target>()?
                    .is_loopback(),
                "{elsewhere}"
            );
        }
        Ok(())
    }
}
