//! eBay's signature, whose header names the key.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::request::Parts;
use http::{HeaderMap, HeaderName};
use serde_json::{Value, json};

use super::endpoint::EbayEndpoint;
use crate::provider::keys::KeyRequest;
use crate::provider::signature::{
    SignError, SignatureAlgorithm, SignatureError, SignatureScheme, Signed, SignedRequest,
    UnsignedRequest, is_uuid, only_value,
};
use crate::provider::{Secret, SecretError, Secrets};

const SIGNATURE: HeaderName = HeaderName::from_static("x-ebay-signature");
const ALGORITHM: &str = "ecdsa";
const DIGEST: &str = "SHA1";
const P256_SHA1: SignatureAlgorithm = SignatureAlgorithm::EcdsaP256Sha1;

/// The key id in tests.
const TEST_KEY: &str = "00000000-0000-4000-8000-000000000000";

#[derive(Debug)]
pub(super) struct Ebay;

/// The maximum length of the header, in bytes, because the header is parsed as a whole before the signature is
/// verified. eBay sends about 250.
const MAX_HEADER: usize = 4 * 1024;

/// The values in the header.
struct Head {
    key_id: String,
    signature: Vec<u8>,
}

impl Head {
    fn read(headers: &HeaderMap) -> Result<Self, SignatureError> {
        const MALFORMED: SignatureError = SignatureError::MalformedHeader(SIGNATURE);
        let value = only_value(headers, &SIGNATURE)?;
        if value.len() > MAX_HEADER {
            return Err(MALFORMED);
        }
        let decoded = BASE64.decode(value);
        let decoded = decoded.map_err(|_| MALFORMED)?;
        let members: Value = serde_json::from_slice(&decoded).map_err(|_| MALFORMED)?;
        let text = |name: &str| members.get(name).and_then(Value::as_str).ok_or(MALFORMED);
        if text("alg")? != ALGORITHM || text("digest")? != DIGEST {
            return Err(SignatureError::OtherAlgorithm);
        }
        let signature = BASE64.decode(text("signature")?);
        Ok(Self {
            key_id: Some(text("kid")?)
                .filter(|id| is_uuid(id))
                .ok_or(MALFORMED)?
                .to_ascii_lowercase(),
            signature: signature.map_err(|_| MALFORMED)?,
        })
    }
}

/// The address of a key. The sandbox has its own application and its own endpoint, so either all secrets are for the
/// sandbox, or none.
fn address(key_id: &str, secrets: &Secrets) -> KeyRequest {
    let mut endpoints = secrets.iter().filter_map(|secret| secret.parse().ok());
    let host = match endpoints.any(|endpoint: EbayEndpoint| endpoint.is_sandbox) {
        true => "api.sandbox.ebay.com",
        false => "api.ebay.com",
    };
    let url = format!("https://{host}/commerce/notification/v1/public_key/{key_id}");
    KeyRequest::get(url).one_key()
}

impl SignatureScheme for Ebay {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        Head::read(&head.headers).map(drop)
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let head = Head::read(request.headers())?;
        let at = address(&head.key_id, secrets);
        request.check_signed_with_key_at(&at, Some(&head.key_id), |key| {
            key.verify(P256_SHA1, request.body(), &head.signature)
        })?;
        Ok(Signed::new())
    }

    fn description(&self) -> Cow<'static, str> {
        "ECDSA P-256, SHA-1".into()
    }

    fn needs_keys(&self, _: &Secrets) -> bool {
        true
    }

    fn check_secret(&self, secret: &Secret) -> Result<(), SecretError> {
        secret.parse::<EbayEndpoint>().map(drop)
    }

    fn sign(&self, request: &mut UnsignedRequest, _: &Secret) -> Result<(), SignError> {
        let no_key = SignError::no_key();
        let (id, key) = request.signing_key().ok_or(no_key.clone())?;
        let signature = key.sign(P256_SHA1, request.body()).ok_or(no_key)?;
        let header = json!({
            "alg": ALGORITHM,
            "kid": id.unwrap_or(TEST_KEY),
            "signature": BASE64.encode(signature),
            "digest": DIGEST,
        });
        request.insert_header(SIGNATURE, BASE64.encode(header.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_uuid_gets_into_an_address() {
        assert!(is_uuid(TEST_KEY));
        assert!(is_uuid("9936261A-7d7b-4621-a0f1-96ccb428af49"));
        for wrong in [
            "",
            "9936261a-7d7b-4621-a0f1-96ccb428af4",
            "9936261a-7d7b-4621-a0f1-96ccb428af499",
            "9936261a7d7b4621a0f196ccb428af490000",
            "9936261a-7d7b-4621-a0f1-96ccb428af4/",
            "../../../../../../attacker.example/",
            "é936261a-7d7b-4621-a0f1-96ccb428af4",
            "------------------------------------",
        ] {
            assert!(!is_uuid(wrong), "{wrong}");
        }
    }
}
