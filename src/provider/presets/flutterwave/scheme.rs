//! Flutterwave's HMAC of version 4, and its token of version 3.

use std::borrow::Cow;

use http::HeaderName;
use http::request::Parts;

use crate::provider::signature::{
    Hmac, SignError, SignatureError, SignatureScheme, Signed, SignedRequest, Token, UnsignedRequest,
};
use crate::provider::{Secret, Secrets};

const SIGNATURE: HeaderName = HeaderName::from_static("flutterwave-signature");

/// The HMAC, if the request has its header, and the token otherwise.
///
/// The secret is the same. Who can send the token knows it, and could make the HMAC.
#[derive(Debug)]
pub(super) struct Flutterwave {
    hmac: Hmac,
    token: Token,
}

impl Flutterwave {
    pub(super) fn new() -> Self {
        Self {
            hmac: Hmac::base64(SIGNATURE),
            token: Token::header(HeaderName::from_static("verif-hash")),
        }
    }
}

impl SignatureScheme for Flutterwave {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        match head.headers.contains_key(SIGNATURE) {
            true => self.hmac.check_head(head),
            false => self.token.check_head(head),
        }
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        match request.headers().contains_key(SIGNATURE) {
            true => self.hmac.verify(request, secrets),
            false => self.token.verify(request, secrets),
        }
    }

    fn signs_body(&self) -> bool {
        false
    }

    fn description(&self) -> Cow<'static, str> {
        "HMAC-SHA256 in base64, or token".into()
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        self.hmac.sign(request, secret)
    }
}
