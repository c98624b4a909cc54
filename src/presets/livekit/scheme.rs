//! LiveKit's token, whose issuer is the API key.

use std::borrow::Cow;
use std::iter;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::header::AUTHORIZATION;
use http::request::Parts;
use serde_json::json;

use super::key::LiveKitKey;
use crate::provider::signature::digests::sha256;
use crate::provider::signature::jwt::sign_hs256;
use crate::provider::signature::timestamp::{TimeUnit, to_unix_time};
use crate::provider::signature::{
    Encoding, Jwt, SignError, SignatureError, SignatureScheme, Signed, SignedRequest,
    UnsignedRequest,
};
use crate::provider::{Secret, SecretError, Secrets};

const BODY_HASH: &str = "sha256";

#[derive(Debug)]
pub(super) struct LiveKit(Jwt);

impl LiveKit {
    pub(super) fn new() -> Self {
        Self(Jwt::hs256().body_hash(BODY_HASH, Encoding::Base64))
    }
}

impl SignatureScheme for LiveKit {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        self.0.check_head(head)
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let mut error = SignatureError::NoMatch;
        for secret in secrets.iter() {
            let Ok(LiveKitKey {
                api_key,
                api_secret,
            }) = secret.parse()
            else {
                error = SignatureError::UnusableSecret;
                continue;
            };
            let token = self.0.clone().issuer(api_key);
            match token.open(request, iter::once(api_secret.expose())) {
                Ok((_, signed)) => return Ok(signed),
                Err(SignatureError::NoMatch) => {}
                Err(other) => error = other,
            }
        }
        Err(error)
    }

    fn signs_time(&self) -> bool {
        true
    }

    fn description(&self) -> Cow<'static, str> {
        self.0.description()
    }

    fn check_secret(&self, secret: &Secret) -> Result<(), SecretError> {
        secret.parse::<LiveKitKey>().map(drop)
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        let LiveKitKey {
            api_key,
            api_secret,
        } = secret.parse()?;
        let seconds = |time| u64::try_from(to_unix_time(time, TimeUnit::Seconds)).unwrap_or(0);
        let now = seconds(request.time());
        let claims = json!({
            "iss": api_key,
            "nbf": now,
            "iat": now,
            "exp": seconds(request.time() + Duration::from_secs(300)),
            BODY_HASH: BASE64.encode(sha256([request.body()])),
        });
        let token = sign_hs256(api_secret.expose(), &claims);
        request.insert_header(AUTHORIZATION, token)
    }
}
