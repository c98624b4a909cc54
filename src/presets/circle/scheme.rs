//! Circle's signature, verified with a given key or with a key that is fetched by its id.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::request::Parts;
use http::{HeaderMap, HeaderName};

use super::keys::{CircleKeys, Keys};
use crate::provider::keys::KeyRequest;
use crate::provider::signature::{
    PublicKey, SignError, SignatureAlgorithm, SignatureError, SignatureScheme, Signed,
    SignedRequest, UnsignedRequest, is_uuid, only_value, signed_under_one_of,
};
use crate::provider::{Secret, SecretError, Secrets};

const SIGNATURE: HeaderName = HeaderName::from_static("x-circle-signature");
const KEY_ID: HeaderName = HeaderName::from_static("x-circle-key-id");
pub(super) const P256: SignatureAlgorithm = SignatureAlgorithm::EcdsaP256;

/// The key id in tests.
const TEST_KEY: &str = "00000000-0000-4000-8000-000000000000";

#[derive(Debug)]
pub(super) struct Circle;

fn signature(headers: &HeaderMap) -> Result<Vec<u8>, SignatureError> {
    BASE64
        .decode(only_value(headers, &SIGNATURE)?)
        .map_err(|_| SignatureError::MalformedHeader(SIGNATURE))
}

/// Whether a request is signed with the given key, or with the fetched key that it names.
fn is_signed(
    request: &SignedRequest<'_>,
    secret: &Secret,
    signature: &[u8],
) -> Result<bool, SignatureError> {
    let CircleKeys(keys) = secret.parse().map_err(|_| SignatureError::UnusableSecret)?;
    let address = match keys {
        Keys::Fetched(address) => address,
        Keys::Given(key) => {
            let key = P256.key_of(key.expose());
            let key = key.ok_or(SignatureError::UnusableSecret)?;
            return Ok(key.verify(P256, request.body(), signature));
        }
    };
    let id = only_value(request.headers(), &KEY_ID)?.to_ascii_lowercase();
    if !is_uuid(&id) {
        return Err(SignatureError::MalformedHeader(KEY_ID));
    }
    let at = KeyRequest::get(format!("{address}/{id}")).one_key();
    let has_signed = |key: &PublicKey| key.verify(P256, request.body(), signature);
    request.check_signed_with_key_at(&at, Some(&id), has_signed)?;
    Ok(true)
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

    fn dummy_secret(&self) -> Secret {
        let keys = CircleKeys::fetched("https://api.circle.com/v2/notifications/publicKey");
        keys.map_or_else(|_| Secret::dummy(), Secret::from)
    }

    fn needs_keys(&self, secrets: &Secrets) -> bool {
        let mut keys = secrets.iter().filter_map(|secret| secret.parse().ok());
        keys.any(|CircleKeys(keys)| matches!(keys, Keys::Fetched(_)))
    }

    fn check_secret(&self, secret: &Secret) -> Result<(), SecretError> {
        secret.parse::<CircleKeys>().map(drop)
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
