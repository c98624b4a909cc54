//! A token that the provider sends with every request. It proves who sent it, and signs nothing.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::header::{AUTHORIZATION, HeaderName};
use http::request::Parts;

use super::compare::is_same;
use super::only_value;
use super::scheme::{SignatureError, SignatureScheme, Signed, SignedRequest};
use super::sign::{SignError, UnsignedRequest};
use crate::provider::{Secret, SecretError, Secrets};

/// The secret itself, in a header. **Nothing is signed**: whoever sees one request can make any
/// other.
///
/// It is compared in constant time, to the byte.
///
/// ```
/// use http::HeaderName;
/// use idempotent_webhook::signature::Token;
/// use idempotent_webhook::{Provider, Secret, Source};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let acme = Provider::custom("acme")
///     .signature(
///         Token::header(HeaderName::from_static("authorization")).prefix("Bearer "),
///         Secret::new("a secret")?,
///     )
///     .delivery_id(Source::json("$.id".parse()?));
/// assert!(!acme.signs_delivery_id());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Token {
    header: HeaderName,
    prefix: &'static str,
}

impl Token {
    /// The token is in this header.
    pub fn header(header: HeaderName) -> Self {
        Self { header, prefix: "" }
    }

    /// The text before the token, such as `Bearer `. Default: none.
    #[must_use]
    pub fn prefix(mut self, prefix: &'static str) -> Self {
        self.prefix = prefix;
        self
    }
}

impl SignatureScheme for Token {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        one_value(&head.headers, &self.header)?
            .strip_prefix(self.prefix.as_bytes())
            .map(drop)
            .ok_or_else(|| SignatureError::MalformedHeader(self.header.clone()))
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let token = one_value(request.headers(), &self.header)?
            .strip_prefix(self.prefix.as_bytes())
            .ok_or_else(|| SignatureError::MalformedHeader(self.header.clone()))?;
        one_of(secrets, token)
    }

    fn signs_body(&self) -> bool {
        false
    }

    fn description(&self) -> Cow<'static, str> {
        "token".into()
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        let value = [self.prefix.as_bytes(), secret.expose()].concat();
        request.insert_header(self.header.clone(), value)
    }
}

/// HTTP Basic authentication: the secret is `<user>:<password>`. **Nothing is signed**: whoever
/// sees one request can make any other.
///
/// ```
/// use idempotent_webhook::signature::BasicAuth;
/// use idempotent_webhook::{Provider, Secret, Source};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let acme = Provider::custom("acme")
///     .signature(BasicAuth::new(), Secret::new("user:password")?)
///     .delivery_id(Source::json("$.id".parse()?));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct BasicAuth {}

impl BasicAuth {
    /// In the header `Authorization`.
    pub fn new() -> Self {
        Self::default()
    }

    /// The decoded `<user>:<password>` of a request.
    fn credentials(headers: &http::HeaderMap) -> Result<Vec<u8>, SignatureError> {
        only_value(headers, &AUTHORIZATION)?
            .strip_prefix("Basic ")
            .and_then(|credentials| BASE64.decode(credentials).ok())
            .ok_or(SignatureError::MalformedHeader(AUTHORIZATION))
    }
}

impl SignatureScheme for BasicAuth {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        Self::credentials(&head.headers).map(drop)
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        one_of(secrets, &Self::credentials(request.headers())?)
    }

    fn signs_body(&self) -> bool {
        false
    }

    fn description(&self) -> Cow<'static, str> {
        "HTTP Basic".into()
    }

    fn check_secret(&self, secret: &Secret) -> Result<(), SecretError> {
        // Neither half may be empty: it would stand for "no user" or "no password".
        match secret.expose().iter().position(|byte| *byte == b':') {
            Some(colon) if colon > 0 && colon + 1 < secret.expose().len() => Ok(()),
            _ => Err(SecretError::new("HTTP Basic needs `<user>:<password>`")),
        }
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        let credentials = BASE64.encode(secret.expose());
        request.insert_header(AUTHORIZATION, format!("Basic {credentials}"))
    }
}

/// The bytes of a header that must be there exactly once. A token need not be ASCII.
pub(in crate::provider) fn one_value<'a>(
    headers: &'a http::HeaderMap,
    name: &HeaderName,
) -> Result<&'a [u8], SignatureError> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => Ok(value.as_bytes()),
        (None, _) => Err(SignatureError::MissingHeader(name.clone())),
        (Some(_), Some(_)) => Err(SignatureError::MalformedHeader(name.clone())),
    }
}

/// Compares with every secret, so that the time does not tell which one matches.
pub(in crate::provider) fn one_of(
    secrets: &Secrets,
    token: &[u8],
) -> Result<Signed, SignatureError> {
    let matches = secrets
        .iter()
        .filter(|secret| is_same(secret.expose(), token));
    match matches.count() {
        0 => Err(SignatureError::NoMatch),
        _ => Ok(Signed::new()),
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn verify(
        scheme: &dyn SignatureScheme,
        secret: &str,
        values: &[&[u8]],
    ) -> Result<(), SignatureError> {
        let mut head = Request::new(()).into_parts().0;
        for value in values {
            let value = http::HeaderValue::from_bytes(value);
            let value = value.map_err(|_| SignatureError::NoMatch)?;
            head.headers.append(AUTHORIZATION, value);
        }
        let secret = Secret::new(secret).map_err(|_| SignatureError::UnusableSecret)?;
        scheme.check_head(&head)?;
        let request = SignedRequest::new(&head, b"");
        scheme.verify(&request, &secret.into()).map(drop)
    }

    #[test]
    fn a_token_matches_to_the_byte() {
        let bearer = Token::header(AUTHORIZATION).prefix("Bearer ");
        assert_eq!(verify(&bearer, "é1", &["Bearer é1".as_bytes()]), Ok(()));
        assert_eq!(
            verify(&bearer, "a", &[]),
            Err(SignatureError::MissingHeader(AUTHORIZATION))
        );
        let malformed = Err(SignatureError::MalformedHeader(AUTHORIZATION));
        assert_eq!(verify(&bearer, "a", &[b"a"]), malformed);
        assert_eq!(verify(&bearer, "a", &[b"bearer a"]), malformed);
        assert_eq!(verify(&bearer, "a", &[b"Bearer a", b"Bearer a"]), malformed);
        for wrong in ["Bearer ", "Bearer  a", "Bearer a ", "Bearer aa", "Bearer A"] {
            let refused = verify(&bearer, "a", &[wrong.as_bytes()]);
            assert_eq!(refused, Err(SignatureError::NoMatch), "{wrong:?}");
        }
    }

    #[test]
    fn basic_credentials_match_to_the_byte() {
        let basic = BasicAuth::new();
        let of = |credentials: &str| format!("Basic {}", BASE64.encode(credentials));
        let verify = |value: &str| verify(&basic, "user:pass:word", &[value.as_bytes()]);
        assert_eq!(verify(&of("user:pass:word")), Ok(()));
        for wrong in ["user:pass", "user:", ":", "", "user:pass:word "] {
            assert_eq!(verify(&of(wrong)), Err(SignatureError::NoMatch), "{wrong}");
        }
        for malformed in ["", "Basic", "Basic !", "Bearer dXNlcg==", "basic dXNlcg=="] {
            assert_eq!(
                verify(malformed),
                Err(SignatureError::MalformedHeader(AUTHORIZATION)),
                "{malformed:?}"
            );
        }
    }

    #[test]
    fn basic_needs_a_user_and_a_password() -> Result<(), SecretError> {
        let basic = BasicAuth::new();
        for wrong in ["user", ":password", "user:", ":"] {
            assert!(basic.check_secret(&Secret::new(wrong)?).is_err(), "{wrong}");
        }
        basic.check_secret(&Secret::new("user:p:w")?)
    }
}
