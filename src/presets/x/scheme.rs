//! X's signature, accepted for JSON objects only.

use std::borrow::Cow;

use http::HeaderName;
use http::request::Parts;

use crate::provider::signature::{
    Hmac, SignError, SignatureError, SignatureScheme, Signed, SignedRequest, UnsignedRequest,
};
use crate::provider::{Secret, SecretError, Secrets};

#[derive(Debug)]
pub(super) struct X {
    hmac: Hmac,
}

impl X {
    pub(super) fn new() -> Self {
        let header = HeaderName::from_static("x-twitter-webhooks-signature");
        Self {
            hmac: Hmac::base64(header).prefix("sha256="),
        }
    }
}

/// Whether the body starts like a JSON object. The token of a challenge does not. The answer to a
/// challenge contains the signature of its token. If bodies of any form were accepted, this answer
/// would be a valid signature of a body that consists of the token.
fn is_object(body: &[u8]) -> bool {
    body.starts_with(b"{")
}

impl SignatureScheme for X {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        self.hmac.check_head(head)
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let signed = self.hmac.verify(request, secrets)?;
        match is_object(request.body()) {
            true => Ok(signed),
            false => Err(SignatureError::MalformedBody),
        }
    }

    fn description(&self) -> Cow<'static, str> {
        self.hmac.description()
    }

    fn check_secret(&self, secret: &Secret) -> Result<(), SecretError> {
        self.hmac.check_secret(secret)
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        match is_object(request.body()) {
            true => self.hmac.sign(request, secret),
            false => Err(SignError::new("the body is not a JSON object")),
        }
    }
}
