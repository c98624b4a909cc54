//! Fireblocks' detached JSON Web Signature, and its older signature.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use http::request::Parts;
use http::{HeaderMap, HeaderName};
use serde_json::json;

use super::keys::FireblocksKeys;
use crate::provider::keys::KeyRequest;
use crate::provider::signature::jwt::{Compact, encode};
use crate::provider::signature::{
    PublicKey, PublicKeySignature, SignError, SignatureAlgorithm, SignatureError, SignatureScheme,
    Signed, SignedRequest, UnsignedRequest, only_value, signed_under_one_of,
};
use crate::provider::{Secret, SecretError, Secrets};

const DETACHED: HeaderName = HeaderName::from_static("fireblocks-webhook-signature");
const ALGORITHM: &str = "RS512";
pub(super) const RS512: SignatureAlgorithm = SignatureAlgorithm::RsaSha512;

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

/// The address of the keys, unless the secret is itself a key.
fn address(secret: &Secret) -> Option<KeyRequest> {
    secret.parse::<FireblocksKeys>().ok()?.address()
}

fn detached(headers: &HeaderMap) -> Result<Compact<'_>, SignatureError> {
    let token = Compact::parse_value(only_value(headers, &DETACHED)?)
        .filter(|token| token.payload.is_empty())
        .ok_or(SignatureError::MalformedHeader(DETACHED))?;
    match &*token.algorithm {
        ALGORITHM => Ok(token),
        _ => Err(SignatureError::OtherAlgorithm),
    }
}

/// The content that a detached signature covers.
fn content(header: &str, body: &[u8]) -> String {
    format!("{header}.{}", BASE64URL.encode(body))
}

/// Whether a message is signed with the given key, or with a fetched key.
fn is_signed(
    request: &SignedRequest<'_>,
    secret: &Secret,
    token: &Compact<'_>,
    message: &[u8],
) -> Result<bool, SignatureError> {
    let has_signed = |key: &PublicKey| key.verify(RS512, message, &token.signature);
    let keys: FireblocksKeys = secret.parse().map_err(|_| SignatureError::UnusableSecret)?;
    let Some(at) = keys.address() else {
        let key = RS512.key_of(secret.expose());
        return key
            .map(|key| has_signed(&key))
            .ok_or(SignatureError::UnusableSecret);
    };
    request.check_signed_with_key_at(&at, token.key_id.as_deref(), has_signed)?;
    Ok(true)
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
            // The older signature is only verified with a given key.
            let is_given = |secret: &Secret| address(secret).is_none();
            return match secrets.iter().any(is_given) {
                true => self.older.verify(request, secrets),
                false => Err(SignatureError::MissingHeader(DETACHED)),
            };
        }
        let token = detached(request.headers())?;
        let message = content(token.header, request.body());
        signed_under_one_of(request, secrets, |secret| {
            is_signed(request, secret, &token, message.as_bytes())
        })?;
        Ok(Signed::new())
    }

    fn description(&self) -> Cow<'static, str> {
        "detached JWS, RS512, or RSA PKCS #1, SHA-512".into()
    }

    fn dummy_secret(&self) -> Secret {
        FireblocksKeys::us().into()
    }

    fn needs_keys(&self, secrets: &Secrets) -> bool {
        secrets.iter().any(|secret| address(secret).is_some())
    }

    fn check_secret(&self, secret: &Secret) -> Result<(), SecretError> {
        secret.parse::<FireblocksKeys>().map(drop)
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        let own = RS512.key_of(secret.expose());
        let (id, key) = match &own {
            Some(key) => (None, key),
            None => request.signing_key().ok_or(SignError::no_key())?,
        };
        let header = encode(&json!({"alg": ALGORITHM, "kid": id.unwrap_or("test")}));
        let content = content(&header, request.body());
        let signature = key
            .sign(RS512, content.as_bytes())
            .ok_or(SignError::new("the key is not a private key"))?;
        let token = format!("{header}..{}", BASE64URL.encode(signature));
        request.insert_header(DETACHED, token)
    }
}
