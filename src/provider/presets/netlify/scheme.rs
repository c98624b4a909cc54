//! Netlify's token, with a hash of the body.

use std::borrow::Cow;

use http::request::Parts;
use http::{HeaderMap, HeaderName};
use serde_json::json;

use crate::digest::sha256_hex;
use crate::provider::signature::jwt::{Compact, sign_hs256};
use crate::provider::signature::keyed::{Hash, is_same};
use crate::provider::signature::{
    SignError, SignatureError, SignatureScheme, Signed, SignedRequest, UnsignedRequest, only_value,
};
use crate::provider::{Secret, Secrets};

const TOKEN: HeaderName = HeaderName::from_static("x-webhook-signature");
const ISSUER: &str = "netlify";
const ALLOWED: &[Hash] = &[Hash::Sha256];

#[derive(Debug)]
pub(super) struct Netlify;

fn token(headers: &HeaderMap) -> Result<Compact<'_>, SignatureError> {
    Compact::parse(only_value(headers, &TOKEN)?).ok_or(SignatureError::MalformedHeader(TOKEN))
}

impl SignatureScheme for Netlify {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        token(&head.headers).map(drop)
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let token = token(request.headers())?;
        let matches = |secret: &Secret| token.is_hmac(secret.expose(), ALLOWED);
        if !secrets.iter().any(matches) {
            return Err(SignatureError::NoMatch);
        }
        let malformed = SignatureError::MalformedHeader(TOKEN);
        let claims = token.claims().ok_or(malformed.clone())?;
        if claims.text("iss") != Some(ISSUER) {
            return Err(malformed);
        }
        let presented = claims.text("sha256").ok_or(malformed)?;
        match is_same(sha256_hex(request.body()).as_bytes(), presented.as_bytes()) {
            true => Ok(Signed::new()),
            false => Err(SignatureError::NoMatch),
        }
    }

    fn description(&self) -> Cow<'static, str> {
        "JWT, HS256, of the body".into()
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        let claims = json!({"iss": ISSUER, "sha256": sha256_hex(request.body())});
        let token = sign_hs256(secret.expose(), &claims);
        request.insert_header(TOKEN, token)
    }
}
