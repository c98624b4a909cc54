//! GitLab's two kinds of secrets.

use std::borrow::Cow;

use http::HeaderName;
use http::request::Parts;

use crate::provider::signature::{
    SignError, SignatureError, SignatureScheme, Signed, SignedRequest, StandardWebhooks, Token,
    UnsignedRequest,
};
use crate::provider::{Secret, SecretError, Secrets};

const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// Verifies with a signing token or a secret token; the form of the secret shows which it is.
#[derive(Debug)]
pub(super) struct GitLab {
    signing: StandardWebhooks,
    token: Token,
}

impl GitLab {
    pub(super) fn new() -> Self {
        Self {
            signing: StandardWebhooks::new(),
            token: Token::header(HeaderName::from_static("x-gitlab-token")),
        }
    }
}

fn is_signing(secret: &Secret) -> bool {
    secret.expose().starts_with(b"whsec_")
}

/// The secrets of one kind.
fn of_kind(secrets: &Secrets, signing: bool) -> Option<Secrets> {
    let secrets = secrets
        .iter()
        .filter(|secret| is_signing(secret) == signing);
    Secrets::try_from(secrets.cloned().collect::<Vec<_>>()).ok()
}

impl SignatureScheme for GitLab {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        match self.token.check_head(head) {
            Err(_) if head.headers.contains_key(SIGNATURE) => self.signing.check_head(head),
            checked => checked,
        }
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let signing = of_kind(secrets, true);
        let tokens = of_kind(secrets, false);
        match (signing, tokens) {
            (Some(signing), None) => self.signing.verify(request, &signing),
            (Some(signing), _) if request.headers().contains_key(SIGNATURE) => {
                self.signing.verify(request, &signing)
            }
            (_, Some(tokens)) => self.token.verify(request, &tokens),
            (None, None) => Err(SignatureError::NoMatch),
        }
    }

    fn signed_content(
        &self,
        request: &SignedRequest<'_>,
    ) -> Result<Option<Vec<u8>>, SignatureError> {
        match request.headers().contains_key(SIGNATURE) {
            true => self.signing.signed_content(request),
            false => Ok(None),
        }
    }

    fn signed_headers(&self) -> &[HeaderName] {
        self.signing.signed_headers()
    }

    fn signs_body(&self) -> bool {
        false
    }

    fn signs_time(&self) -> bool {
        true
    }

    fn description(&self) -> Cow<'static, str> {
        "token, or Standard Webhooks".into()
    }

    fn check_secret(&self, secret: &Secret) -> Result<(), SecretError> {
        match is_signing(secret) {
            true => self.signing.check_secret(secret),
            false => self.token.check_secret(secret),
        }
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        match is_signing(secret) {
            true => self.signing.sign(request, secret),
            false => self.token.sign(request, secret),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    const SIGNING: &str = "whsec_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=";

    fn accepts(secrets: &[&str], headers: &[(&str, &str)]) -> bool {
        let request = headers
            .iter()
            .fold(Request::post("/"), |request, (name, value)| {
                request.header(*name, *value)
            });
        let secrets = secrets.iter().map(|secret| Secret::new(*secret));
        let secrets = secrets.collect::<Result<Vec<_>, _>>();
        let (Ok(request), Ok(secrets)) = (request.body(()), secrets) else {
            return false;
        };
        let (head, ()) = request.into_parts();
        let request = SignedRequest::new(&head, b"{}");
        Secrets::try_from(secrets)
            .is_ok_and(|secrets| GitLab::new().verify(&request, &secrets).is_ok())
    }

    #[test]
    fn a_signing_token_is_never_taken_as_a_plain_one() {
        assert!(accepts(&["plain"], &[("x-gitlab-token", "plain")]));
        assert!(!accepts(&[SIGNING], &[("x-gitlab-token", SIGNING)]));
        assert!(accepts(&[SIGNING, "plain"], &[("x-gitlab-token", "plain")]));
        let both = [
            ("x-gitlab-token", "plain"),
            ("webhook-id", "1"),
            ("webhook-timestamp", "1700000000"),
            (
                "webhook-signature",
                "v1,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
            ),
        ];
        assert!(accepts(&["plain"], &both));
        assert!(!accepts(&[SIGNING, "plain"], &both));
    }
}
