//! monday's token, for the URL of the webhook.

use std::borrow::Cow;
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::request::Parts;
use serde_json::json;

use crate::provider::signature::jwt::sign_hs256;
use crate::provider::signature::timestamp::{TimeUnit, to_unix_time};
use crate::provider::signature::{
    Jwt, SignError, SignatureError, SignatureScheme, Signed, SignedRequest, UnsignedRequest,
};
use crate::provider::{Secret, Secrets};

#[derive(Debug)]
pub(super) struct Monday(Jwt);

impl Monday {
    pub(super) fn new() -> Self {
        Self(Jwt::hs256())
    }
}

impl SignatureScheme for Monday {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        self.0.check_head(head)
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let url = request.url()?;
        let (claims, signed) = self.0.open(request, secrets.iter().map(Secret::expose))?;
        // It is not documented whether the audience contains the query of the URL, so both are
        // accepted.
        let without_query = url.split_once('?').map_or(&*url, |(endpoint, _)| endpoint);
        let is_ours = |audience: &&str| *audience == url || *audience == without_query;
        match claims.texts("aud").iter().any(is_ours) {
            true => Ok(signed),
            false => Err(SignatureError::NotForUs("another audience (`aud`)")),
        }
    }

    fn signs_body(&self) -> bool {
        false
    }

    fn signs_time(&self) -> bool {
        true
    }

    fn signs_url(&self) -> bool {
        true
    }

    fn description(&self) -> Cow<'static, str> {
        "JWT, HS256, of the URL".into()
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        let seconds = |time| u64::try_from(to_unix_time(time, TimeUnit::Seconds)).unwrap_or(0);
        let claims = json!({
            "accountId": 1,
            "userId": 1,
            "aud": request.url()?,
            "iat": seconds(request.time()),
            "exp": seconds(request.time() + Duration::from_secs(300)),
        });
        let token = sign_hs256(secret.expose(), &claims);
        request.insert_header(AUTHORIZATION, token)
    }
}
