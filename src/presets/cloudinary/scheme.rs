//! Cloudinary's hash of the body, the time and the secret.

use std::borrow::Cow;

use http::request::Parts;
use http::{HeaderMap, HeaderName};

use crate::provider::signature::digests::{sha1, sha256};
use crate::provider::signature::same_secret::is_same;
use crate::provider::signature::timestamp::{TimeUnit, to_unix_time, unix_time};
use crate::provider::signature::{
    SignError, SignatureError, SignatureScheme, Signed, SignedRequest, UnsignedRequest, only_value,
};
use crate::provider::{Secret, Secrets};

const SIGNATURE: HeaderName = HeaderName::from_static("x-cld-signature");
const TIME: HeaderName = HeaderName::from_static("x-cld-timestamp");

#[derive(Debug)]
pub(super) struct Cloudinary;

/// The hash function of a signature, which its length shows.
#[derive(Clone, Copy)]
enum Hash {
    Sha1,
    Sha256,
}

impl Hash {
    fn of(self, body: &[u8], time: &str, secret: &Secret) -> Vec<u8> {
        let parts = [body, time.as_bytes(), secret.expose()];
        match self {
            Self::Sha1 => sha1(&parts.concat()),
            Self::Sha256 => sha256(parts),
        }
    }
}

/// The values of the headers.
struct Head<'a> {
    hash: Hash,
    signature: Vec<u8>,
    time: &'a str,
}

impl<'a> Head<'a> {
    fn read(headers: &'a HeaderMap) -> Result<Self, SignatureError> {
        let text = only_value(headers, &SIGNATURE)?;
        let malformed = || SignatureError::MalformedHeader(SIGNATURE);
        let hash = match text.len() {
            40 => Hash::Sha1,
            64 => Hash::Sha256,
            _ => return Err(malformed()),
        };
        if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Err(malformed());
        }
        Ok(Self {
            hash,
            signature: hex::decode(text).map_err(|_| malformed())?,
            time: only_value(headers, &TIME)?,
        })
    }
}

impl SignatureScheme for Cloudinary {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        Head::read(&head.headers).map(drop)
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let head = Head::read(request.headers())?;
        let time =
            unix_time(head.time, TimeUnit::Seconds).ok_or(SignatureError::MalformedHeader(TIME))?;
        let matches = |secret: &Secret| {
            let expected = head.hash.of(request.body(), head.time, secret);
            is_same(&expected, &head.signature)
        };
        match secrets.iter().any(matches) {
            true => Ok(Signed::new().at(time)),
            false => Err(SignatureError::NoMatch),
        }
    }

    fn signs_time(&self) -> bool {
        true
    }

    fn description(&self) -> Cow<'static, str> {
        "SHA-1 or SHA-256 in hex, of the body, the time and the secret".into()
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        let time = to_unix_time(request.time(), TimeUnit::Seconds).to_string();
        let signature = Hash::Sha1.of(request.body(), &time, secret);
        request.insert_header(SIGNATURE, hex::encode(signature))?;
        request.insert_header(TIME, time)
    }
}
