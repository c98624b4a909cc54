//! Contentful's signature of a canonical request.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::SystemTime;

use http::request::Parts;
use http::{HeaderMap, HeaderName};

use crate::provider::signature::digests::{Hash, hmac};
use crate::provider::signature::form::encode;
use crate::provider::signature::same_secret::is_same;
use crate::provider::signature::timestamp::{TimeUnit, to_unix_time, unix_time};
use crate::provider::signature::{
    SignError, SignatureError, SignatureScheme, Signed, SignedRequest, UnsignedRequest, only_value,
};
use crate::provider::{Secret, SecretError, Secrets};

const SIGNATURE: HeaderName = HeaderName::from_static("x-contentful-signature");
const LIST_NAME: &str = "x-contentful-signed-headers";
const LIST: HeaderName = HeaderName::from_static(LIST_NAME);
const TIME_NAME: &str = "x-contentful-timestamp";
const TIME: HeaderName = HeaderName::from_static(TIME_NAME);

#[derive(Debug)]
pub(super) struct Contentful;

/// The values in the headers of a request.
struct Head<'a> {
    signature: &'a str,
    signed_at: SystemTime,
    /// The signed headers: their names, and the values that are signed.
    headers: BTreeMap<&'a str, &'a str>,
}

impl<'a> Head<'a> {
    fn read(headers: &'a HeaderMap) -> Result<Self, SignatureError> {
        let time = only_value(headers, &TIME)?;
        let signed_at = unix_time(time, TimeUnit::Milliseconds);
        Ok(Self {
            signature: only_value(headers, &SIGNATURE)?,
            signed_at: signed_at.ok_or(SignatureError::MalformedHeader(TIME))?,
            headers: listed(headers, only_value(headers, &LIST)?)?,
        })
    }
}

/// The listed headers and the header with the time, in the order of their names. The header with
/// the list is left out.
fn listed<'a>(
    headers: &'a HeaderMap,
    list: &'a str,
) -> Result<BTreeMap<&'a str, &'a str>, SignatureError> {
    let mut found = BTreeMap::new();
    let names = list.split(',').chain([TIME_NAME]);
    for name in names.filter(|name| *name != LIST_NAME) {
        let header = headers
            .keys()
            .find(|known| known.as_str() == name)
            .ok_or(SignatureError::MalformedHeader(LIST))?;
        found.insert(header.as_str(), only_value(headers, header)?.trim());
    }
    Ok(found)
}

impl SignatureScheme for Contentful {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        Head::read(&head.headers).map(drop)
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let head = Head::read(request.headers())?;
        let canonical = canonical(
            request.method().as_str(),
            &request.public_path_and_query(),
            &head.headers,
        );
        // Compared as text, so that only lower-case digits match.
        let matches = |secret: &Secret| {
            let mac = mac(secret, &canonical, request.body());
            is_same(mac.as_bytes(), head.signature.as_bytes())
        };
        if secrets.iter().any(matches) {
            Ok(Signed::new().at(head.signed_at))
        } else {
            Err(SignatureError::NoMatch)
        }
    }

    fn signs_time(&self) -> bool {
        true
    }

    fn signs_url(&self) -> bool {
        true
    }

    /// The signature covers the path, but not the host.
    fn needs_public_url(&self) -> bool {
        false
    }

    fn description(&self) -> Cow<'static, str> {
        "HMAC-SHA256 in hex, of the request".into()
    }

    fn check_secret(&self, secret: &Secret) -> Result<(), SecretError> {
        match secret.expose().len() {
            64 => Ok(()),
            _ => Err(SecretError::new("Contentful's secrets have 64 characters")),
        }
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        let time = to_unix_time(request.time(), TimeUnit::Milliseconds);
        request.insert_header(TIME, time.to_string())?;
        let names = request.headers().keys().map(HeaderName::as_str);
        let mut names = names
            .filter(|name| *name == "content-type" || name.starts_with("x-contentful-"))
            .filter(|name| *name != SIGNATURE.as_str())
            .chain([LIST_NAME])
            .collect::<Vec<_>>();
        names.sort_unstable();
        names.dedup();
        let list = names.join(",");
        let headers = listed(request.headers(), &list)
            .map_err(|_| SignError::new("a header that is signed is repeated"))?;
        let path = request.public_path_and_query();
        let canonical = canonical(request.method().as_str(), &path, &headers);
        let mac = mac(secret, &canonical, request.body());
        request.insert_header(LIST, list)?;
        request.insert_header(SIGNATURE, mac)
    }
}

fn mac(secret: &Secret, canonical: &str, body: &[u8]) -> String {
    let parts = [canonical.as_bytes(), body];
    hex::encode(hmac(Hash::Sha256, secret.expose(), parts))
}

/// The signed content before the body. The header that lists the signed headers is signed as well,
/// at its place in their order.
fn canonical(method: &str, path_and_query: &str, headers: &BTreeMap<&str, &str>) -> String {
    let mut names = headers
        .keys()
        .copied()
        .chain([LIST_NAME])
        .collect::<Vec<_>>();
    names.sort_unstable();
    let list = names.join(",");
    let mut headers = headers.clone();
    headers.insert(LIST_NAME, &list);
    let headers = headers
        .iter()
        .map(|(name, value)| format!("{name}:{value}"));
    let headers = headers.collect::<Vec<_>>().join(";");
    format!("{method}\n{}\n{headers}\n", encoded_path(path_and_query))
}

/// The path and the query as Contentful signs them: the query is percent-encoded first, and then
/// the path and the query together.
fn encoded_path(path_and_query: &str) -> String {
    let path = match path_and_query.split_once('?') {
        Some((path, query)) if !query.is_empty() => {
            Cow::Owned(format!("{path}?{}", encode(query.as_bytes(), "-_.!~*'()")))
        }
        Some((path, _)) => Cow::Borrowed(path),
        None => Cow::Borrowed(path_and_query),
    };
    encode(path.as_bytes(), ";,/?:@&=+$-_.!~*'()#")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_is_encoded_twice() {
        for (path, encoded) in [
            ("/", "/"),
            ("/a?", "/a"),
            ("/a/b?x=1&y=%20", "/a/b?x%253D1%2526y%253D%252520"),
            ("/a%20b", "/a%2520b"),
            ("/a?b?c", "/a?b%253Fc"),
        ] {
            assert_eq!(encoded_path(path), encoded);
        }
    }
}
