//! Fireblocks' detached JSON Web Signature, and its older signature.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use http::request::Parts;
use http::{HeaderMap, HeaderName};
use serde_json::json;

use crate::provider::signature::jwt::{Compact, encode};
use crate::provider::signature::{
    PublicKeySignature, SignError, SignatureAlgorithm, SignatureError, SignatureScheme, Signed,
    SignedRequest, UnsignedRequest, only_value,
};
use crate::provider::{Secret, SecretError, Secrets};

const DETACHED: HeaderName = HeaderName::from_static("fireblocks-webhook-signature");
const ALGORITHM: &str = "RS512";
const RS512: SignatureAlgorithm = SignatureAlgorithm::RsaSha512;

#[derive(Debug)]
pub(super) struct Fireblocks {
    older: PublicKeySignature,
}

impl Fireblocks {
    pub(super) fn new() -> Self {
        let header = HeaderName::from_static("fireblocks-signature");
        Self {
            older: PublicKeySignature::rsa_sha512(header),
        }
    }
}

fn detached(headers: &HeaderMap) -> Result<Compact<'_>, SignatureError> {
    Compact::parse(only_value(headers, &DETACHED)?)
        .filter(|token| token.payload.is_empty() && token.algorithm == ALGORITHM)
        .ok_or(SignatureError::MalformedHeader(DETACHED))
}

/// What a detached signature covers.
fn content(header: &str, body: &[u8]) -> String {
    format!("{header}.{}", BASE64URL.encode(body))
}

impl SignatureScheme for Fireblocks {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        match head.headers.contains_key(DETACHED) {
            true => detached(&head.headers).map(drop),
            false => self.older.check_head(head),
        }
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        if !request.headers().contains_key(DETACHED) {
            return self.older.verify(request, secrets);
        }
        let token = detached(request.headers())?;
        let content = content(token.header, request.body());
        let mut error = SignatureError::NoMatch;
        let has_signed = |secret: &Secret| match RS512.key_of(secret.expose()) {
            Some(key) => key.verify(RS512, content.as_bytes(), &token.signature),
            None => {
                error = SignatureError::UnusableSecret;
                false
            }
        };
        match secrets.iter().any(has_signed) {
            true => Ok(Signed::new()),
            false => Err(error),
        }
    }

    fn description(&self) -> Cow<'static, str> {
        "detached JWS, RS512, or RSA PKCS #1, SHA-512".into()
    }

    fn check_secret(&self, secret: &Secret) -> Result<(), SecretError> {
        self.older.check_secret(secret)
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        let header = encode(&json!({"alg": ALGORITHM, "kid": "test"}));
        let content = content(&header, request.body());
        let key = RS512.key_of(secret.expose());
        let signature = key
            .and_then(|key| key.sign(RS512, content.as_bytes()))
            .ok_or(SignError::new("the secret is not a private key"))?;
        let token = format!("{header}..{}", BASE64URL.encode(signature));
        request.insert_header(DETACHED, token)
    }
}
