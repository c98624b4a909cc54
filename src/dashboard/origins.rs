//! The hosts and origins of the dashboard and its login, as the application has set them, and the
//! `Content-Security-Policy` built from them. `guard.rs` adds this header along with the others.

use http::header::{CONTENT_SECURITY_POLICY, HOST, HeaderName, HeaderValue};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, Uri};

/// The addresses of the dashboard that the application has set.
#[derive(Clone, Debug, Default)]
pub(super) struct Site {
    /// The only host names under which the dashboard may be reached. `None` if any host is allowed.
    pub(super) hosts: Option<Vec<String>>,
    /// The origins under which browsers see the dashboard, if a proxy changes the `Host`.
    pub(super) origins: Vec<String>,
    /// The origins, such as the origin of a login page, to which the browser may be redirected when
    /// it posts a form after its session has expired.
    pub(super) login_origins: Vec<String>,
}

impl Site {
    /// Whether the request is for a host of the dashboard.
    pub(super) fn has_host_of(&self, head: &Parts) -> bool {
        let Some(hosts) = &self.hosts else {
            return true;
        };
        let Some(host) = host(head).and_then(|host| host.parse::<Authority>().ok()) else {
            return false;
        };
        hosts.iter().any(|known| {
            known.eq_ignore_ascii_case(host.host()) || known.eq_ignore_ascii_case(host.as_str())
        })
    }

    /// Whether a URL or an origin belongs to the dashboard.
    pub(super) fn is_ours(&self, url: &str, head: &Parts) -> bool {
        let Ok(url) = url.parse::<Uri>() else {
            return false;
        };
        let (Some(scheme), Some(authority)) = (url.scheme_str(), url.authority()) else {
            return false;
        };
        let origin = format!("{scheme}://{authority}");
        let is_trusted = |known: &String| known.eq_ignore_ascii_case(&origin);
        self.origins.iter().any(is_trusted)
            || host(head).is_some_and(|host| host.eq_ignore_ascii_case(authority.as_str()))
    }

    /// Forbids inline scripts, inline styles, content from other origins, and framing.
    pub(super) fn add_policy(&self, headers: &mut HeaderMap) {
        let mut form_action = "'self'".to_owned();
        for origin in &self.login_origins {
            form_action.push(' ');
            form_action.push_str(origin);
        }
        let policy = format!(
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
             connect-src 'self'; form-action {form_action}; base-uri 'none'; frame-ancestors 'none'"
        );
        if let Ok(policy) = HeaderValue::try_from(policy) {
            headers.insert(CONTENT_SECURITY_POLICY, policy);
        }
    }
}

/// The origin in lower case, such as `https://ops.example.com`, if the text is an origin.
pub(super) fn origin(text: &str) -> Option<String> {
    let uri: Uri = text.parse().ok()?;
    let (scheme, authority) = (uri.scheme_str()?, uri.authority()?);
    let has_user = authority.as_str().contains('@');
    let is_whole = uri.path() == "/" && !text.ends_with('/') && uri.query().is_none();
    let is_known = scheme == "https" || scheme == "http";
    (is_known && is_whole && !has_user).then(|| text.to_ascii_lowercase())
}

/// The requested host. HTTP/2 requests carry it in the URI.
fn host(head: &Parts) -> Option<&str> {
    let authority = head.uri.authority().map(|authority| authority.as_str());
    authority.or_else(|| single(&head.headers, &HOST))
}

/// The value of a header that occurs exactly once.
pub(super) fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::origin;

    #[test]
    fn an_origin_is_a_scheme_a_host_and_perhaps_a_port() {
        assert_eq!(
            origin("https://Ops.example:8443").as_deref(),
            Some("https://ops.example:8443")
        );
        for text in [
            "",
            "ops.example",
            "https://ops.example/",
            "https://ops.example/login",
            "https://ops.example?a",
            "https://a@ops.example",
            "ftp://ops.example",
            "https://ops.example; script-src *",
        ] {
            assert_eq!(origin(text), None, "{text}");
        }
    }
}
