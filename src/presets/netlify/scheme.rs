//! Netlify's token, with a hash of the body.

use std::borrow::Cow;

use http::HeaderName;
use http::request::Parts;
use serde_json::json;

use crate::provider::digest::sha256_hex;
use crate::provider::signature::digests::Hash;
use crate::provider::signature::jwt::{Compact, sign_hs256};
use crate::provider::signature::same_secret::is_same;
use crate::provider::signature::{
    SignError, SignatureError, SignatureScheme, Signed, SignedRequest, UnsignedRequest,
};
use crate::provider::{Secret, Secrets};

const TOKEN: HeaderName = HeaderName::from_static("x-webhook-signature");
const ISSUER: &str = "netlify";
const ALLOWED: &[Hash] = &[Hash::Sha256];

#[derive(Debug)]
pub(super) struct Netlify;

impl SignatureScheme for Netlify {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        Compact::in_header(&head.headers, &TOKEN).map(drop)
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let token = Compact::in_header(request.headers(), &TOKEN)?;
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
