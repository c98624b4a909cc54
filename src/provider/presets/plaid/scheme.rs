//! Plaid's token, with a hash of the body.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use http::request::Parts;
use http::{HeaderMap, HeaderName};
use serde_json::{Map, Value, json};

use crate::digest::sha256_hex;
use crate::provider::signature::jwt::{Compact, encode};
use crate::provider::signature::keyed::is_same;
use crate::provider::signature::public_key::ecdsa::{PublicKey, public_key_of_jwk, sign_with_jwk};
use crate::provider::signature::timestamp::{TimeUnit, to_unix_time};
use crate::provider::signature::{
    SignError, SignatureError, SignatureScheme, Signed, SignedRequest, UnsignedRequest, only_value,
};
use crate::provider::{Secret, SecretError, Secrets};

/// The name of what tells a token from others.
pub(super) const TOKEN_ID: &str = "token";

const TOKEN: HeaderName = HeaderName::from_static("plaid-verification");
const ALGORITHM: &str = "ES256";
const BODY_HASH: &str = "request_body_sha256";

#[derive(Debug)]
pub(super) struct Plaid;

/// A key that has not expired.
struct Key {
    id: Option<String>,
    public: PublicKey,
}

fn jwk(secret: &Secret) -> Option<Map<String, Value>> {
    serde_json::from_slice(secret.expose()).ok()
}

impl Key {
    fn of(secret: &Secret) -> Option<Self> {
        let jwk = jwk(secret)?;
        let expired = jwk.get("expired_at").is_some_and(|at| !at.is_null());
        if expired {
            return None;
        }
        let id = jwk.get("kid").and_then(Value::as_str);
        Some(Self {
            id: id.map(str::to_owned),
            public: public_key_of_jwk(&jwk)?,
        })
    }

    fn has_signed(&self, token: &Compact<'_>) -> bool {
        // A key without an id is the only one.
        let is_meant = self.id.is_none() || self.id == token.key_id;
        is_meant
            && token.algorithm == ALGORITHM
            && self
                .public
                .verify_fixed(&token.signed().concat(), &token.signature)
    }
}

fn token(headers: &HeaderMap) -> Result<Compact<'_>, SignatureError> {
    Compact::parse(only_value(headers, &TOKEN)?).ok_or(SignatureError::MalformedHeader(TOKEN))
}

impl SignatureScheme for Plaid {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        token(&head.headers).map(drop)
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let token = token(request.headers())?;
        let mut error = SignatureError::NoMatch;
        let has_signed = |secret: &Secret| match Key::of(secret) {
            Some(key) => key.has_signed(&token),
            None => {
                error = SignatureError::UnusableSecret;
                false
            }
        };
        if !secrets.iter().any(has_signed) {
            return Err(error);
        }
        let malformed = SignatureError::MalformedHeader(TOKEN);
        let claims = token.claims().ok_or(malformed.clone())?;
        let presented = claims.text(BODY_HASH).ok_or(malformed.clone())?;
        if !is_same(sha256_hex(request.body()).as_bytes(), presented.as_bytes()) {
            return Err(SignatureError::NoMatch);
        }
        let time = claims.time("iat").ok_or(malformed)?;
        let id = format!("{}.{presented}", to_unix_time(time, TimeUnit::Seconds));
        Ok(Signed::new().at(time).value(TOKEN_ID, id))
    }

    fn signs_time(&self) -> bool {
        true
    }

    fn description(&self) -> Cow<'static, str> {
        "JWT, ES256, of the body".into()
    }

    fn check_secret(&self, secret: &Secret) -> Result<(), SecretError> {
        match Key::of(secret) {
            Some(_) => Ok(()),
            None => Err(SecretError::new(
                "Plaid's keys are JSON Web Keys of P-256, and not expired",
            )),
        }
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        let jwk = jwk(secret).ok_or(SignError::new("the secret is not a JSON Web Key"))?;
        let time = u64::try_from(to_unix_time(request.time(), TimeUnit::Seconds)).unwrap_or(0);
        let header = json!({"alg": ALGORITHM, "kid": jwk.get("kid"), "typ": "JWT"});
        let claims = json!({"iat": time, BODY_HASH: sha256_hex(request.body())});
        let signed = format!("{}.{}", encode(&header), encode(&claims));
        let signature = sign_with_jwk(&jwk, signed.as_bytes())
            .ok_or(SignError::new("the secret is not a private key"))?;
        let token = format!("{signed}.{}", BASE64URL.encode(signature));
        request.insert_header(TOKEN, token)
    }
}
