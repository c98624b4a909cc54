//! Google's token, for one service account and one audience.

use std::borrow::Cow;
use std::iter;

use http::request::Parts;
use serde_json::json;

use super::push::PubSub;
use crate::provider::keys::KeyRequest;
use crate::provider::signature::{
    Jwt, SignError, SignatureAlgorithm, SignatureError, SignatureScheme, Signed, SignedRequest,
    UnsignedRequest,
};
use crate::provider::{Secret, SecretError, Secrets};

const KEYS: &str = "https://www.googleapis.com/oauth2/v3/certs";

#[derive(Debug)]
pub(super) struct Token(Jwt);

impl Token {
    pub(super) fn new() -> Self {
        let token = Jwt::public_key(SignatureAlgorithm::RsaSha256, KeyRequest::get(KEYS))
            .issuer("https://accounts.google.com")
            .issuer("accounts.google.com");
        Self(token)
    }
}

impl SignatureScheme for Token {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        self.0.check_head(head)
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let (claims, signed) = self.0.open(request, iter::empty())?;
        let mut error = SignatureError::UnusableSecret;
        let subscriptions = secrets.iter().filter_map(|secret| secret.parse().ok());
        for PubSub {
            service_account,
            audience,
        } in subscriptions
        {
            if claims.text("aud") != Some(&audience) {
                error = SignatureError::NotForUs("another audience (`aud`)");
            } else if claims.text("email") != Some(&service_account)
                || !claims.is_true("email_verified")
            {
                error = SignatureError::NotForUs("another service account (`email`)");
            } else {
                return Ok(signed);
            }
        }
        Err(error)
    }

    fn signs_body(&self) -> bool {
        false
    }

    fn signs_time(&self) -> bool {
        true
    }

    fn description(&self) -> Cow<'static, str> {
        self.0.description()
    }

    fn dummy_secret(&self) -> Secret {
        let nobodys = PubSub::new("nobody@example.com", "https://example.com/");
        nobodys.map_or_else(|_| Secret::dummy(), Secret::from)
    }

    fn needs_keys(&self, _: &Secrets) -> bool {
        true
    }

    fn check_secret(&self, secret: &Secret) -> Result<(), SecretError> {
        secret.parse::<PubSub>().map(drop)
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        let PubSub {
            service_account,
            audience,
        } = secret.parse()?;
        let claims = json!({"aud": audience, "email": service_account, "email_verified": true});
        self.0.sign_with(request, &[], claims)
    }
}
