//! The address of an endpoint, as a provider calls it.

use std::fmt;

use http::Uri;

/// An address: the scheme, the host, the port and the path. A user, a password and a query are left out: they may be
/// secrets, and are not compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    /// Without the default port.
    origin: String,
    path: String,
}

impl Address {
    /// `None` if it is not an HTTP URL.
    pub(super) fn read(text: &str) -> Option<Self> {
        let uri: Uri = text.trim().parse().ok()?;
        let scheme = uri.scheme_str()?.to_ascii_lowercase();
        let default_port = match &*scheme {
            "https" => 443,
            "http" => 80,
            _ => return None,
        };
        let host = uri.host().filter(|host| !host.is_empty())?;
        let host = host.to_ascii_lowercase();
        let port = uri.port_u16().filter(|port| *port != default_port);
        Some(Self {
            origin: match port {
                Some(port) => format!("{scheme}://{host}:{port}"),
                None => format!("{scheme}://{host}"),
            },
            path: uri.path().to_owned(),
        })
    }

    #[cfg(feature = "postgres")]
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Whether both addresses have the same path, apart from a slash at its end.
    pub(super) fn has_path_of(&self, other: &Self) -> bool {
        self.path.trim_end_matches('/') == other.path.trim_end_matches('/')
    }

    /// The part of this address that may be shown to somebody who knows the other address: all of it if the two share
    /// the origin or the path, otherwise only the origin. The path of an unrelated address may be a secret, such as in
    /// the webhook address of a chat.
    pub(super) fn shown_beside(&self, other: &Self) -> String {
        match self.origin == other.origin || self.has_path_of(other) {
            true => self.to_string(),
            false => self.origin.clone(),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        Address::read(text).map_or("none".to_owned(), |address| address.to_string())
    }

    #[test]
    fn y2_an_address_is_read_without_what_may_be_a_secret() {
        for (text, expected) in [
            ("https://Example.com/Hooks", "https://example.com/Hooks"),
            ("HTTPS://example.com:443/a", "https://example.com/a"),
            ("http://example.com:80/a", "http://example.com/a"),
            ("https://example.com:8443", "https://example.com:8443/"),
            (
                "https://user:pass@example.com/a?token=b#c",
                "https://example.com/a",
            ),
            ("pubsub://project:topic", "none"),
            ("arn:aws:events:us-east-1::event-source/a", "none"),
            ("alerts@example.com", "none"),
            ("/webhooks", "none"),
            ("", "none"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn y2_the_path_of_a_foreign_address_is_not_shown() {
        let read = |text: &str| Address::read(text);
        let Some(own) = read("https://example.com/hooks/stripe") else {
            unreachable!("it is one");
        };
        for (other, expected) in [
            (
                "https://chat.example/services/T0/secret",
                "https://chat.example",
            ),
            (
                "https://example.com/hook/stripe",
                "https://example.com/hook/stripe",
            ),
            (
                "https://old.example/hooks/stripe/",
                "https://old.example/hooks/stripe/",
            ),
        ] {
            let shown = read(other).map(|other| other.shown_beside(&own));
            assert_eq!(shown.as_deref(), Some(expected));
        }
    }
}
