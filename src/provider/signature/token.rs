//! A token that the provider sends with every request. It proves who sent it, and signs nothing.

use std::borrow::Cow;

use http::header::{HeaderMap, HeaderName};
use http::request::Parts;

use super::same_secret::is_same;
use super::scheme::{SignatureError, SignatureScheme, Signed, SignedRequest};
use super::sign::{SignError, UnsignedRequest};
use crate::provider::{Secret, Secrets};

/// The secret itself, in a header. **Nothing is signed**: anyone who sees one request can forge
/// others.
///
/// The token is compared byte by byte, in constant time.
///
/// ```
/// use http::HeaderName;
/// use idempotent_webhook::provider::signature::Token;
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

    /// The text before the token, such as `Bearer `, in upper or lower case. Default: none.
    #[must_use]
    pub fn prefix(mut self, prefix: &'static str) -> Self {
        self.prefix = prefix;
        self
    }

    /// The text after the prefix. The case of an HTTP authentication scheme such as `Bearer` does
    /// not matter (RFC 9110).
    fn token<'a>(&self, headers: &'a HeaderMap) -> Result<&'a [u8], SignatureError> {
        let value = one_value(headers, &self.header)?;
        match value.split_at_checked(self.prefix.len()) {
            Some((prefix, token)) if prefix.eq_ignore_ascii_case(self.prefix.as_bytes()) => {
                Ok(token)
            }
            Some(_) | None => Err(SignatureError::MalformedHeader(self.header.clone())),
        }
    }
}

impl SignatureScheme for Token {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        self.token(&head.headers).map(drop)
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        one_of(secrets, self.token(request.headers())?)
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

/// The bytes of a header that must occur exactly once. A token need not be ASCII.
pub(crate) fn one_value<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<&'a [u8], SignatureError> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => Ok(value.as_bytes()),
        (None, _) => Err(SignatureError::MissingHeader(name.clone())),
        (Some(_), Some(_)) => Err(SignatureError::MalformedHeader(name.clone())),
    }
}

/// Compares with every secret, so that the time does not reveal which one matches.
pub(crate) fn one_of(secrets: &Secrets, token: &[u8]) -> Result<Signed, SignatureError> {
    let matches = secrets
        .iter()
        .filter(|secret| is_same(secret.expose(), token));
    match matches.count() {
        0 => Err(SignatureError::NoMatch),
        _ => Ok(Signed::new()),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use http::Request;
    use http::header::AUTHORIZATION;

    use super::*;

    /// Verifies a request with these values of `Authorization`.
    pub(in crate::provider::signature) fn verify(
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
        assert_eq!(verify(&bearer, "a", &[b"bearera"]), malformed);
        assert_eq!(verify(&bearer, "a", &[b"bearer a"]), Ok(()));
        assert_eq!(verify(&bearer, "a", &[b"Bearer a", b"Bearer a"]), malformed);
        for wrong in ["Bearer ", "Bearer  a", "Bearer a ", "Bearer aa", "Bearer A"] {
            let refused = verify(&bearer, "a", &[wrong.as_bytes()]);
            assert_eq!(refused, Err(SignatureError::NoMatch), "{wrong:?}");
        }
    }
}
