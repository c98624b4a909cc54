//! The address of keys, and the request that fetches them.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{Method, Request, Uri};

/// The request that fetches keys from an address.
///
/// ```
/// use idempotent_webhook::provider::keys::KeyRequest;
///
/// let keys = KeyRequest::get("https://www.googleapis.com/oauth2/v3/certs");
/// ```
#[derive(Clone)]
pub struct KeyRequest {
    url: Cow<'static, str>,
    json: Option<String>,
    account: String,
    is_of_one_key: bool,
}

impl KeyRequest {
    /// A GET of an address. [`KeySet::parse`](super::KeySet::parse) reads its answer.
    ///
    /// If the address contains a part of a webhook request, check that part first. The host must always be the
    /// provider's own.
    pub fn get(url: impl Into<Cow<'static, str>>) -> Self {
        Self {
            url: url.into(),
            json: None,
            account: String::new(),
            is_of_one_key: false,
        }
    }

    /// Sends a POST with JSON instead of a GET.
    #[must_use]
    pub fn post_json(mut self, json: &serde_json::Value) -> Self {
        self.json = Some(json.to_string());
        self
    }

    /// The account that owns the keys, if one address serves several accounts. The number of an account's addresses is
    /// limited. Never use a text that a request has chosen. Default: all addresses of a host belong to one account.
    #[must_use]
    pub fn account(mut self, account: impl Into<String>) -> Self {
        self.account = account.into();
        self
    }

    /// Says that the address has a single key. If the address answers with 404 or 410, the key has been withdrawn
    /// and is no longer used. Default: such an answer is a failure like any other, and the fetched keys stay in
    /// use.
    #[must_use]
    pub fn one_key(mut self) -> Self {
        self.is_of_one_key = true;
        self
    }

    pub(super) fn is_of_one_key(&self) -> bool {
        self.is_of_one_key
    }

    /// The address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Identifies the addresses that share limits: all addresses of one account at one host.
    pub(super) fn bounds(&self) -> String {
        format!("{}\n{}", self.host(), self.account)
    }

    /// Identifies the request among all requests for keys.
    pub(crate) fn id(&self) -> String {
        format!("{}\n{}", self.url, self.json.as_deref().unwrap_or_default())
    }

    /// The host, for messages. The sender of a webhook request may have chosen the rest of the address.
    pub(crate) fn host(&self) -> String {
        let uri: Option<Uri> = self.url.parse().ok();
        let host = uri.as_ref().and_then(Uri::host);
        host.unwrap_or_default().to_owned()
    }

    pub(super) fn to_http(&self) -> Result<Request<Bytes>, http::Error> {
        let request = Request::builder()
            .uri(&*self.url)
            .header(
                ACCEPT,
                "application/json, application/x-pem-file;q=0.9, */*;q=0.8",
            )
            .header(
                USER_AGENT,
                concat!("idempotent-webhook/", env!("CARGO_PKG_VERSION")),
            );
        match &self.json {
            None => request.method(Method::GET).body(Bytes::new()),
            Some(json) => request
                .method(Method::POST)
                .header(CONTENT_TYPE, "application/json")
                .body(json.clone().into()),
        }
    }
}

impl fmt::Debug for KeyRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The JSON may contain an API key.
        f.debug_struct("KeyRequest")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// Whether an address that a request names is `https` and has no user, no port, no query and no fragment, and whether
/// `is_known` accepts its host and path. The address must be short, because many addresses may wait to be asked.
#[cfg(feature = "rsa")]
pub(crate) fn is_https_at(url: &str, is_known: impl Fn(&str, &str) -> bool) -> bool {
    const MAX_LENGTH: usize = 256;
    if url.len() > MAX_LENGTH {
        return false;
    }
    let Some((host, path)) = url.strip_prefix("https://").and_then(|rest| {
        let slash = rest.find('/')?;
        Some(rest.split_at(slash))
    }) else {
        return false;
    };
    let is_plain = |text: &str, others: &str| {
        text.chars()
            .all(|c| c.is_ascii_alphanumeric() || others.contains(c))
    };
    is_plain(host, ".-") && is_plain(path, "/._-") && !path.contains("..") && is_known(host, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_a_host_and_an_account_share_bounds() {
        let at = |url: &'static str| KeyRequest::get(url);
        let bounds = at("https://a.test/1").bounds();
        assert_eq!(bounds, at("https://a.test/2").bounds());
        assert_ne!(bounds, at("https://b.test/1").bounds());
        assert_ne!(bounds, at("https://a.test/1").account("other").bounds());
    }

    #[cfg(feature = "rsa")]
    #[test]
    fn an_address_that_is_more_than_a_host_and_a_path_is_refused() {
        let long = |length: usize| format!("https://a.test/{:a<1$}", "", length - 15);
        assert!(is_https_at(&long(256), |_, _| true));
        for wrong in [
            "http://a.test/key",
            "https://a.test",
            "https://user@a.test/key",
            "https://a.test:8443/key",
            "https://a.test/key?of=another",
            "https://a.test/key#another",
            "https://a.test/../key",
            "https://a.test/%2e%2e/key",
            &*long(257),
        ] {
            assert!(!is_https_at(wrong, |_, _| true), "{wrong}");
        }
        assert!(!is_https_at("https://a.test/key", |_, _| false));
    }
}
