//! HTTP Basic authentication.

use std::borrow::Cow;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::header::AUTHORIZATION;
use http::request::Parts;

use super::only_value;
use super::scheme::{SignatureError, SignatureScheme, Signed, SignedRequest};
use super::sign::{SignError, UnsignedRequest};
use super::token::one_of;
use crate::provider::secret::is_part;
use crate::provider::{Secret, SecretError, Secrets};

/// HTTP Basic authentication. The secret is the text form of [`BasicCredentials`]. **Nothing is signed**: anyone who
/// sees one request can forge others.
///
/// ```
/// use idempotent_webhook::provider::signature::{BasicAuth, BasicCredentials};
/// use idempotent_webhook::{Provider, Secret, Source};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let credentials = BasicCredentials::new("user", Secret::new("password")?)?;
/// let acme = Provider::custom("acme")
///     .signature(BasicAuth::new(), Secret::from(credentials))
///     .delivery_id(Source::json("$.id".parse()?));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct BasicAuth {}

impl BasicAuth {
    /// Reads the credentials from the header `Authorization`.
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
        secret.parse::<BasicCredentials>().map(drop)
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        let credentials = BASE64.encode(secret.expose());
        request.insert_header(AUTHORIZATION, format!("Basic {credentials}"))
    }
}

const MALFORMED: SecretError =
    SecretError::new("HTTP Basic needs `<user>:<password>`, without white space around them");

/// The user and the password of HTTP Basic authentication, for [`BasicAuth`] and for presets such as
/// [`postmark`](crate::presets::postmark).
///
/// Its text form is `<user>:<password>`.
#[derive(Clone, Debug)]
pub struct BasicCredentials {
    user: String,
    password: Secret,
}

impl BasicCredentials {
    /// The user and the password.
    ///
    /// # Errors
    ///
    /// [`SecretError`] if the user is blank or contains a colon, if the password is not UTF-8, or if the user or the
    /// password starts or ends with white space.
    pub fn new(user: impl Into<String>, password: Secret) -> Result<Self, SecretError> {
        let user = user.into();
        match is_part(&user, ':') && password.is_last_part() {
            true => Ok(Self { user, password }),
            false => Err(MALFORMED),
        }
    }
}

impl FromStr for BasicCredentials {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<Self, SecretError> {
        let (user, password) = Secret::split_pair(text).ok_or(MALFORMED)?;
        Self::new(user, password)
    }
}

impl From<BasicCredentials> for Secret {
    fn from(credentials: BasicCredentials) -> Self {
        Self::of_pair(&credentials.user, &credentials.password)
    }
}

#[cfg(test)]
mod tests {
    use super::super::token::tests::verify;
    use super::*;

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
