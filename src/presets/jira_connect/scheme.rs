//! Atlassian Connect's token, with a hash of the method, the path and the query.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use http::request::Parts;
use serde_json::json;

use crate::provider::signature::digests::{Hash, sha256};
use crate::provider::signature::form::{encode, fields};
use crate::provider::signature::jwt::{Compact, sign_hs256};
use crate::provider::signature::same_secret::is_same;
use crate::provider::signature::timestamp::{TimeUnit, to_unix_time};
use crate::provider::signature::{
    SignError, SignatureError, SignatureScheme, Signed, SignedRequest, UnsignedRequest, only_value,
};
use crate::provider::{Secret, Secrets};

/// How long a token is accepted after it has expired, because a retry may carry the token of the
/// first attempt.
pub(super) const LEEWAY: Duration = Duration::from_secs(60 * 60);

/// The characters that the hashed content does not percent-encode.
const UNRESERVED: &str = "-_.~";

#[derive(Debug)]
pub(super) struct JiraConnect;

fn token(headers: &HeaderMap) -> Result<Compact<'_>, SignatureError> {
    only_value(headers, &AUTHORIZATION)?
        .strip_prefix("JWT ")
        .and_then(Compact::parse_value)
        .ok_or(SignatureError::MalformedHeader(AUTHORIZATION))
}

impl SignatureScheme for JiraConnect {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        token(&head.headers).map(drop)
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let token = token(request.headers())?;
        let matches = |secret: &Secret| token.is_hmac(secret.expose(), &[Hash::Sha256]);
        if !secrets.iter().any(matches) {
            return Err(SignatureError::NoMatch);
        }
        let malformed = SignatureError::MalformedHeader(AUTHORIZATION);
        let claims = token.claims().ok_or(malformed.clone())?;
        let expected = hash(request.method().as_str(), request.path_and_query())
            .ok_or(SignatureError::NoMatch)?;
        let presented = claims.text("qsh").ok_or(malformed.clone())?;
        if !is_same(expected.as_bytes(), presented.as_bytes()) {
            return Err(SignatureError::NoMatch);
        }
        let expires = claims.time("exp").and_then(|exp| exp.checked_add(LEEWAY));
        let signed = Signed::new().expires(expires.ok_or(malformed)?);
        Ok(match claims.time("iat") {
            Some(time) => signed.at(time),
            None => signed,
        })
    }

    fn signs_body(&self) -> bool {
        false
    }

    fn signs_time(&self) -> bool {
        true
    }

    fn description(&self) -> Cow<'static, str> {
        "JWT, HS256, of the method, the path and the query".into()
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        let seconds = |time| u64::try_from(to_unix_time(time, TimeUnit::Seconds)).unwrap_or(0);
        let hash = hash(request.method().as_str(), request.path_and_query())
            .ok_or(SignError::new("the query has too many parameters"))?;
        let claims = json!({
            "iss": "test",
            "iat": seconds(request.time()),
            "exp": seconds(request.time() + Duration::from_secs(180)),
            "qsh": hash,
        });
        let token = sign_hs256(secret.expose(), &claims);
        request.insert_header(AUTHORIZATION, format!("JWT {token}"))
    }
}

/// The hash of a canonical request: its method, its path and its query. `None` if the query has too
/// many parameters.
fn hash(method: &str, path_and_query: &str) -> Option<String> {
    let (path, query) = path_and_query
        .split_once('?')
        .unwrap_or((path_and_query, ""));
    let path = match path.strip_suffix('/').unwrap_or(path) {
        "" => "/".to_owned(),
        path => path.replace('&', "%26"),
    };
    let canonical = format!("{method}&{path}&{}", canonical_query(query)?);
    Some(hex::encode(sha256([canonical.as_bytes()])))
}

/// The parameters, sorted by name. The values of a repeated parameter are sorted and joined.
fn canonical_query(query: &str) -> Option<String> {
    let mut by_name = BTreeMap::<_, Vec<_>>::new();
    for (name, value) in fields(query.as_bytes())? {
        // The parameter `jwt`, with which Atlassian sends the token outside of webhooks, is not
        // hashed.
        if name != b"jwt" {
            let values = by_name.entry(encode(&name, UNRESERVED)).or_default();
            values.push(encode(&value, UNRESERVED));
        }
    }
    let pairs = by_name.into_iter().map(|(name, mut values)| {
        values.sort();
        format!("{name}={}", values.join(","))
    });
    Some(pairs.collect::<Vec<_>>().join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_canonical() {
        for (query, canonical) in [
            ("", ""),
            ("b=1&a=2", "a=2&b=1"),
            ("a=z&a=y&jwt=x", "a=y,z"),
            ("a=b+c%20d%2a~", "a=b%20c%20d%2A~"),
            ("a", "a="),
        ] {
            assert_eq!(canonical_query(query).as_deref(), Some(canonical));
        }
    }

    #[test]
    fn a_slash_at_the_end_is_not_part_of_the_hash() {
        assert_eq!(hash("GET", "/a/"), hash("GET", "/a"));
        assert_eq!(hash("GET", "/?"), hash("GET", "/"));
        assert_ne!(hash("GET", "/a&b"), hash("GET", "/a"));
        assert_ne!(hash("GET", "/a"), hash("POST", "/a"));
    }
}
