//! WebSub's signature, whose method the hub chooses.

use std::borrow::Cow;

use http::request::Parts;
use http::{HeaderMap, HeaderName};

use crate::provider::signature::digests::{Hash, hmac};
use crate::provider::signature::same_secret::is_same;
use crate::provider::signature::{
    SignError, SignatureError, SignatureScheme, Signed, SignedRequest, UnsignedRequest, only_value,
};
use crate::provider::{Secret, Secrets};

const SIGNATURE: HeaderName = HeaderName::from_static("x-hub-signature");

#[derive(Debug)]
pub(super) struct WebSub;

impl SignatureScheme for WebSub {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        signature(&head.headers).map(drop)
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let (hash, presented) = signature(request.headers())?;
        let matches = |secret: &Secret| {
            let mac = hmac(hash, secret.expose(), [request.body()]);
            is_same(&mac, &presented)
        };
        if secrets.iter().any(matches) {
            Ok(Signed::new())
        } else {
            Err(SignatureError::NoMatch)
        }
    }

    fn description(&self) -> Cow<'static, str> {
        "HMAC-SHA256, -384, -512 or -SHA1 in hex, `x-hub-signature`".into()
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        let mac = hmac(Hash::Sha256, secret.expose(), [request.body()]);
        request.insert_header(SIGNATURE, format!("sha256={}", hex::encode(mac)))
    }
}

/// The method and the MAC.
fn signature(headers: &HeaderMap) -> Result<(Hash, Vec<u8>), SignatureError> {
    let (method, mac) = only_value(headers, &SIGNATURE)?
        .split_once('=')
        .ok_or(SignatureError::MalformedHeader(SIGNATURE))?;
    let hash = match method {
        #[cfg(feature = "sha1")]
        "sha1" => Hash::Sha1,
        #[cfg(not(feature = "sha1"))]
        "sha1" => return Err(SignatureError::FeatureOff("sha1")),
        "sha256" => Hash::Sha256,
        "sha384" => Hash::Sha384,
        "sha512" => Hash::Sha512,
        _ => return Err(SignatureError::MalformedHeader(SIGNATURE)),
    };
    match hex::decode(mac) {
        Ok(mac) => Ok((hash, mac)),
        Err(_) => Err(SignatureError::MalformedHeader(SIGNATURE)),
    }
}
