//! Addresses to which a key or a token is sent.

use std::str::FromStr;

use reqwest::Url;

use crate::target::is_loopback;

/// An address with `https://`, or with `http://` on this machine. It has no trailing slash.
#[derive(Clone)]
pub struct Address {
    url: String,
    is_here: bool,
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let url: Url = text
            .parse()
            .map_err(|_| "it is not a URL, such as https://example.com")?;
        let is_here = url.host_str().is_some_and(is_loopback);
        match url.scheme() {
            "https" => {}
            "http" if is_here => {}
            "http" => {
                return Err(
                    "it must be https://, because a key or a token is sent there".to_owned(),
                );
            }
            _ => return Err("it must start with https://".to_owned()),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(
                "it has a user name or a password, which other users of this machine would see"
                    .to_owned(),
            );
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err("it has a query or a fragment".to_owned());
        }
        Ok(Self {
            url: url.as_str().trim_end_matches('/').to_owned(),
            is_here,
        })
    }
}

impl Address {
    pub fn as_str(&self) -> &str {
        &self.url
    }

    /// Whether the address is on this machine.
    pub fn is_here(&self) -> bool {
        self.is_here
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_goes_over_tls_or_stays_on_this_machine() {
        for (text, url) in [
            (
                "https://ops.example.com/admin/webhooks/",
                "https://ops.example.com/admin/webhooks",
            ),
            (
                "https://b\u{fc}cher.example",
                "https://xn--bcher-kva.example",
            ),
            ("http://127.0.0.1:3000", "http://127.0.0.1:3000"),
            ("http://[::1]:3000/admin", "http://[::1]:3000/admin"),
            ("http://localhost", "http://localhost"),
        ] {
            let address = text.parse::<Address>();
            assert_eq!(
                address.map(|address| address.url),
                Ok(url.to_owned()),
                "{text}"
            );
        }
        for text in [
            "http://ops.example.com",
            "http://localhost.example.com",
            "http://127.0.0.1.example.com",
            "https://ada:secret@ops.example.com",
            "https://ops.example.com?token=1",
            "ftp://127.0.0.1",
            "ops.example.com",
        ] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
