//! Requests to a provider's API.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use form_urlencoded::Serializer;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LINK, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, Url};
use serde::de::DeserializeOwned;

use crate::provider::{Secret, redacted};
use crate::provider_api::source_error::SourceError;

/// The maximum size of an answer, in bytes.
const MAX_ANSWER: usize = 128 * 1024 * 1024;

/// How much of an error response is shown, in characters.
const SHOWN: usize = 200;

/// The maximum number of redirects that are followed.
const MAX_REDIRECTS: usize = 10;

/// How long to wait if a rate limit does not say how long.
const DEFAULT_WAIT: Duration = Duration::from_secs(60);

/// How a provider's API is called.
///
/// ```
/// use std::time::Duration;
///
/// use idempotent_webhook::Secret;
/// use idempotent_webhook::reconcile::{Http, StripeEvents};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let http = Http::new()
///     .client(reqwest::Client::builder().proxy(reqwest::Proxy::all("http://proxy:3128")?).build()?)
///     .timeout(Duration::from_secs(10));
/// let events = StripeEvents::new(Secret::new("rk_…")?, ["invoice.paid"]).http(http);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Http {
    client: Option<Client>,
    base: Option<String>,
    timeout: Duration,
}

impl Http {
    /// Uses a built-in client and the provider's address.
    pub fn new() -> Self {
        Self {
            client: None,
            base: None,
            timeout: Duration::from_secs(30),
        }
    }

    /// Sets the client, for example to use a proxy, your own certificates, or a different TLS implementation.
    ///
    /// If the client follows a redirect to another origin, the answer is refused. The built-in client does not follow
    /// such a redirect at all.
    #[must_use]
    pub fn client(mut self, client: Client) -> Self {
        self.client = Some(client);
        self
    }

    /// Sets the address to use instead of the provider's: the address of a sandbox, such as
    /// `https://sandbox-api.paddle.com`, of your own server, or of a server in a test.
    #[must_use]
    pub fn base(mut self, address: impl Into<String>) -> Self {
        self.base = Some(address.into().trim_end_matches('/').to_owned());
        self
    }

    /// Sets how long a request may take. Default: 30 seconds.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
}

/// Shows the address without its user and password.
impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http")
            .field("base", &self.base.as_deref().map(redacted))
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl Default for Http {
    fn default() -> Self {
        Self::new()
    }
}

/// How a request is authorized.
#[derive(Clone)]
pub(super) enum Authorization {
    Bearer(Secret),
    /// The token is created before each request, because it is valid only for minutes.
    BearerOf(Arc<dyn Fn() -> Secret + Send + Sync>),
    /// HTTP Basic, with the key as the user, and no password.
    User(Secret),
    /// The token is in a header that the provider defines.
    In(HeaderName, Secret),
}

impl Authorization {
    fn header(&self) -> Result<(HeaderName, HeaderValue), SourceError> {
        let bearer = |token: &Secret| (AUTHORIZATION, [b"Bearer ", token.expose()].concat());
        let (name, value) = match self {
            Self::Bearer(token) => bearer(token),
            Self::BearerOf(token) => bearer(&token()),
            Self::User(user) => {
                let value = format!("Basic {}", encoded(user));
                (AUTHORIZATION, value.into_bytes())
            }
            Self::In(name, token) => (name.clone(), token.expose().to_vec()),
        };
        let mut value = HeaderValue::from_bytes(&value)
            .map_err(|_| SourceError::new("the API key cannot be in a header").of_key())?;
        value.set_sensitive(true);
        Ok((name, value))
    }

    /// Masks the key in a text, because an answer may echo the request.
    fn mask(&self, text: &str) -> String {
        let key = match self {
            Self::Bearer(key) | Self::User(key) | Self::In(_, key) => key.clone(),
            Self::BearerOf(key) => key(),
        };
        text.replace(&*String::from_utf8_lossy(key.expose()), "…")
            .replace(&encoded(&key), "…")
    }
}

/// A user without a password, encoded for HTTP Basic.
fn encoded(user: &Secret) -> String {
    STANDARD.encode([user.expose(), b":"].concat())
}

impl fmt::Debug for Authorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authorization(redacted)")
    }
}

/// A provider's API.
#[derive(Clone, Debug)]
pub(super) struct Api {
    http: Http,
    client: Arc<std::sync::OnceLock<Client>>,
    /// The provider's address.
    address: String,
    authorization: Authorization,
    headers: Vec<(HeaderName, String)>,
}

/// An API's answer.
pub(super) struct Answer {
    pub(super) headers: HeaderMap,
    body: Vec<u8>,
}

impl Answer {
    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, SourceError> {
        parse(&self.body)
    }
}

/// Reads JSON. The error does not quote the JSON, because the JSON may be an event.
pub(super) fn parse<T: DeserializeOwned>(json: &[u8]) -> Result<T, SourceError> {
    serde_json::from_slice(json).map_err(|error| {
        SourceError::new(format_args!(
            "the answer differs from the documentation, at line {} column {}",
            error.line(),
            error.column()
        ))
    })
}

impl Api {
    pub(super) fn new(address: impl Into<String>, authorization: Authorization) -> Self {
        Self {
            http: Http::new(),
            client: Arc::default(),
            address: address.into(),
            authorization,
            headers: Vec::new(),
        }
    }

    pub(super) fn http(&mut self, http: Http) {
        self.http = http;
    }

    /// Adds a header to each request.
    pub(super) fn header(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(super) async fn get(
        &self,
        path: &str,
        query: &[(&str, String)],
    ) -> Result<Answer, SourceError> {
        let query = Serializer::new(String::new()).extend_pairs(query).finish();
        self.send(Method::GET, path, &format!("{path}?{query}"), None)
            .await
    }

    pub(super) async fn post(&self, path: &str) -> Result<Answer, SourceError> {
        self.send(Method::POST, path, path, None).await
    }

    /// Sends a query as a JSON body, as for GraphQL.
    pub(super) async fn query(&self, path: &str, json: String) -> Result<Answer, SourceError> {
        self.send(Method::POST, path, path, Some(json)).await
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        target: &str,
        json: Option<String>,
    ) -> Result<Answer, SourceError> {
        let base = self.http.base.as_deref().unwrap_or(&self.address);
        let client = self.client()?;
        let (authorization, value) = self.authorization.header()?;
        let mut request = client
            .request(method.clone(), format!("{base}{target}"))
            .timeout(self.http.timeout)
            .header(ACCEPT, "application/json")
            .header(
                USER_AGENT,
                concat!("idempotent-webhook/", env!("CARGO_PKG_VERSION")),
            )
            .header(authorization, value);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        if let Some(json) = json {
            request = request.header(CONTENT_TYPE, "application/json").body(json);
        }
        let failed = |error: reqwest::Error| {
            let error = SourceError::from(error.without_url());
            SourceError::new(format_args!("{method} {path}: {error}"))
        };
        let request = request.build().map_err(failed)?;
        let asked = request.url().origin();
        let mut response = client.execute(request).await.map_err(failed)?;
        if response.url().origin() != asked {
            // A list from another origin may not be the provider's.
            let text = format!("{method} {path} was redirected to another origin");
            return Err(SourceError::new(text));
        }
        let mut body = Vec::new();
        while let Some(part) = response.chunk().await.map_err(failed)? {
            if body.len() + part.len() > MAX_ANSWER {
                let text = format!("{method} {path}: the answer is longer than 128 MiB");
                return Err(SourceError::new(text));
            }
            body.extend_from_slice(&part);
        }
        if response.status().is_success() {
            return Ok(Answer {
                headers: std::mem::take(response.headers_mut()),
                body,
            });
        }
        let shown = self.shown(&String::from_utf8_lossy(&body));
        let error = SourceError::new(format_args!(
            "{method} {path} was answered with {}: {}",
            response.status(),
            shown.trim()
        ));
        Err(match wait_of(&response) {
            Some(wait) => error.retry_after(wait),
            None if is_permanent(response.status()) => error.permanent(),
            None if is_of_key(response.status()) => error.of_key(),
            None => error,
        })
    }

    /// The start of a text from the API, with the key masked.
    pub(super) fn shown(&self, text: &str) -> String {
        let masked = self.authorization.mask(text);
        let visible = masked
            .chars()
            .map(|char| if char.is_control() { ' ' } else { char });
        visible.take(SHOWN).collect()
    }

    fn client(&self) -> Result<&Client, SourceError> {
        if let Some(client) = &self.http.client {
            return Ok(client);
        }
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = Client::builder().redirect(same_origin()).build()?;
        Ok(self.client.get_or_init(|| client))
    }
}

/// A query parameter from the address of the next page, if the `Link` header gives one.
pub(super) fn next_page(headers: &HeaderMap, parameter: &str) -> Option<String> {
    let links = headers.get(LINK)?.to_str().ok()?;
    let next = links
        .split(',')
        .find(|link| link.contains("rel=\"next\""))?;
    let (_, address) = next.split_once('<')?;
    let (address, _) = address.split_once('>')?;
    let (_, query) = address.split_once('?')?;
    form_urlencoded::parse(query.as_bytes())
        .find(|(name, _)| name == parameter)
        .map(|(_, value)| value.into_owned())
}

/// Follows redirects within the same origin, such as GitHub's after a rename, and no redirect to another origin.
fn same_origin() -> Policy {
    Policy::custom(|attempt| {
        let asked = attempt.previous().first().map(Url::origin);
        if asked == Some(attempt.url().origin()) && attempt.previous().len() <= MAX_REDIRECTS {
            attempt.follow()
        } else {
            attempt.stop()
        }
    })
}

/// Whether the request itself is wrong, so that the provider would refuse it again. This excludes a wrong key, a
/// timeout, and a failure of the provider.
fn is_permanent(status: StatusCode) -> bool {
    let may_pass = [
        StatusCode::UNAUTHORIZED,
        StatusCode::FORBIDDEN,
        StatusCode::REQUEST_TIMEOUT,
    ];
    status.is_client_error() && !may_pass.contains(&status)
}

/// Whether the key is wrong or lacks a right.
fn is_of_key(status: StatusCode) -> bool {
    [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status)
}

/// How long to wait after an answer, if the answer asks to wait.
fn wait_of(response: &Response) -> Option<Duration> {
    let number = |name: &HeaderName| -> Option<u64> {
        response.headers().get(name)?.to_str().ok()?.parse().ok()
    };
    let after = number(&RETRY_AFTER).map(Duration::from_secs);
    let is_exhausted = number(&HeaderName::from_static("x-ratelimit-remaining")) == Some(0);
    // GitHub gives the time at which the rate limit resets.
    let reset = || {
        let at = number(&HeaderName::from_static("x-ratelimit-reset")).filter(|_| is_exhausted)?;
        let at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(at))?;
        Some(at.duration_since(SystemTime::now()).unwrap_or_default() + Duration::from_secs(1))
    };
    match response.status() {
        StatusCode::TOO_MANY_REQUESTS => Some(after.or_else(reset).unwrap_or(DEFAULT_WAIT)),
        StatusCode::FORBIDDEN => after.or_else(reset),
        status if status.is_server_error() => after,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_the_key_or_the_moment_may_pass() {
        for (status, expected) in [
            (404, true),
            (422, true),
            (401, false),
            (403, false),
            (500, false),
        ] {
            let status = StatusCode::from_u16(status).unwrap_or_default();
            assert_eq!(is_permanent(status), expected, "{status}");
        }
    }

    #[test]
    fn a_password_in_the_address_is_not_shown() {
        let authorization =
            || Authorization::User(Secret::new("secret").unwrap_or_else(|_| unreachable!()));
        let mut api = Api::new("https://api.example.com", authorization());
        api.http(Http::new().base("https://ada:geheim@proxy.example.com/api"));
        let shown = format!("{api:?}");
        assert!(
            shown.contains("https://redacted@proxy.example.com/api"),
            "{shown}"
        );
        assert!(
            !shown.contains("geheim") && !shown.contains("secret"),
            "{shown}"
        );
    }

    #[test]
    fn a_server_that_fails_says_when_to_ask_again() -> Result<(), http::Error> {
        for (status, expected) in [(500, Some(7)), (503, Some(7)), (404, None), (401, None)] {
            let answer = http::Response::builder()
                .status(status)
                .header(RETRY_AFTER, "7")
                .body("")?;
            let wait = wait_of(&Response::from(answer));
            assert_eq!(wait, expected.map(Duration::from_secs), "{status}");
        }
        Ok(())
    }
}
