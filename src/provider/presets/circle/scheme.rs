//! Circle's signature, with a key that is given or found by its id.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::request::Parts;
use http::{HeaderMap, HeaderName};

use crate::provider::keys::KeyRequest;
use crate::provider::signature::{
    SignError, SignatureAlgorithm, SignatureError, SignatureScheme, Signed, SignedRequest,
    UnsignedRequest, is_uuid, only_value, signed_under_one_of,
};
use crate::provider::{Secret, SecretError, Secrets};

const SIGNATURE: HeaderName = HeaderName::from_static("x-circle-signature");
const KEY_ID: HeaderName = HeaderName::from_static("x-circle-key-id");
const P256: SignatureAlgorithm = SignatureAlgorithm::EcdsaP256;

/// The id of a key in tests.
const TEST_KEY: &str = "00000000-0000-4000-8000-000000000000";

#[derive(Debug)]
pub(super) struct Circle;

/// The address below which the keys are, if the secret is one.
fn address(secret: &Secret) -> Option<&str> {
    let address = std::str::from_utf8(secret.expose()).ok()?;
    address.starts_with("https://").then_some(address)
}

fn signature(headers: &HeaderMap) -> Result<Vec<u8>, SignatureError> {
    BASE64
        .decode(only_value(headers, &SIGNATURE)?)
        .map_err(|_| SignatureError::MalformedHeader(SIGNATURE))
}

/// Whether a request is signed with the key of a secret, or with that of its id at the secret's address.
fn is_signed(
    request: &SignedRequest<'_>,
    secret: &Secret,
    signature: &[u8],
) -> Result<bool, SignatureError> {
    let Some(address) = address(secret) else {
        let key = P256.key_of(secret.expose());
        let key = key.ok_or(SignatureError::UnusableSecret)?;
        return Ok(key.verify(P256, request.body(), signature));
    };
    let id = only_value(request.headers(), &KEY_ID)?.to_ascii_lowercase();
    if !is_uuid(&id) {
        return Err(SignatureError::MalformedHeader(KEY_ID));
    }
    let at = KeyRequest::get(format!("{}/{id}", address.trim_end_matches('/')));
    let keys = request.keys(&at, Some(&id))?;
    let mut keys = keys.with_id(&id);
    Ok(keys.any(|key| key.verify(P256, request.body(), signature)))
}

impl SignatureScheme for Circle {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        signature(&head.headers).map(drop)
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let signature = signature(request.headers())?;
        signed_under_one_of(request, secrets, |secret| {
            is_signed(request, secret, &signature)
        })?;
        Ok(Signed::new())
    }

    fn description(&self) -> Cow<'static, str> {
        "ECDSA P-256".into()
    }

    fn needs_keys(&self, secrets: &Secrets) -> bool {
        secrets.iter().any(|secret| address(secret).is_some())
    }

    fn check_secret(&self, secret: &Secret) -> Result<(), SecretError> {
        match address(secret).is_some() || P256.key_of(secret.expose()).is_some() {
            true => Ok(()),
            false => Err(SecretError::new(
                "it is neither a P-256 key in PEM or base64 nor the address of Circle's keys",
            )),
        }
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        let no_key = SignError::no_key();
        let own = P256.key_of(secret.expose());
        let (id, key) = match &own {
            Some(key) => (None, key),
            None => request.signing_key().ok_or(no_key.clone())?,
        };
        let signature = key.sign(P256, request.body()).ok_or(no_key)?;
        let id = id.unwrap_or(TEST_KEY).to_owned();
        request.insert_header(KEY_ID, id)?;
        request.insert_header(SIGNATURE, BASE64.encode(signature))
    }
}
