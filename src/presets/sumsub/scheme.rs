//! Sumsub's HMAC, whose algorithm is in a header.

use std::borrow::Cow;

use http::request::Parts;
use http::{HeaderMap, HeaderName};

use crate::provider::signature::{
    Hash, Hmac, SignError, SignatureError, SignatureScheme, Signed, SignedRequest, UnsignedRequest,
    only_value,
};
use crate::provider::{Secret, Secrets};

const SIGNATURE: HeaderName = HeaderName::from_static("x-payload-digest");
const ALGORITHM: HeaderName = HeaderName::from_static("x-payload-digest-alg");

#[derive(Debug)]
pub(super) struct Sumsub;

/// The scheme with the algorithm that a request names, if it is allowed.
fn scheme(headers: &HeaderMap) -> Result<Hmac, SignatureError> {
    let hash = match headers.contains_key(ALGORITHM) {
        false => Hash::Sha256,
        true => match only_value(headers, &ALGORITHM)? {
            #[cfg(feature = "sha1")]
            "HMAC_SHA1_HEX" => Hash::Sha1,
            #[cfg(not(feature = "sha1"))]
            "HMAC_SHA1_HEX" => return Err(SignatureError::FeatureOff("sha1")),
            "HMAC_SHA256_HEX" => Hash::Sha256,
            "HMAC_SHA512_HEX" => Hash::Sha512,
            _ => return Err(SignatureError::MalformedHeader(ALGORITHM)),
        },
    };
    Ok(Hmac::hex(SIGNATURE).hash(hash))
}

impl SignatureScheme for Sumsub {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        scheme(&head.headers)?.check_head(head)
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        scheme(request.headers())?.verify(request, secrets)
    }

    fn description(&self) -> Cow<'static, str> {
        "HMAC in hex, SHA256 or the hash that a header names".into()
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        if !request.headers().contains_key(ALGORITHM) {
            request.insert_header(ALGORITHM, "HMAC_SHA256_HEX")?;
        }
        scheme(request.headers())
            .map_err(|_| SignError::new("the algorithm is not one of Sumsub's"))?
            .sign(request, secret)
    }
}
