//! fal's signature of four lines, for one user.

use std::borrow::Cow;
use std::time::SystemTime;

use http::request::Parts;
use http::{HeaderMap, HeaderName};

use super::user::FalUser;
use crate::provider::digest::sha256_hex;
use crate::provider::keys::KeyRequest;
use crate::provider::signature::timestamp::{TimeUnit, to_unix_time, unix_time};
use crate::provider::signature::{
    SignError, SignatureAlgorithm, SignatureError, SignatureScheme, Signed, SignedRequest,
    UnsignedRequest, only_value,
};
use crate::provider::{Secret, SecretError, Secrets};

pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-fal-webhook-request-id");
const USER: HeaderName = HeaderName::from_static("x-fal-webhook-user-id");
const TIME: HeaderName = HeaderName::from_static("x-fal-webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("x-fal-webhook-signature");

const KEYS: &str = "https://rest.fal.ai/.well-known/jwks.json";
const ED25519: SignatureAlgorithm = SignatureAlgorithm::Ed25519;

#[derive(Debug)]
pub(super) struct Fal {
    keys: KeyRequest,
    signed: [HeaderName; 3],
}

impl Fal {
    pub(super) fn new() -> Self {
        Self {
            keys: KeyRequest::get(KEYS),
            signed: [REQUEST_ID, USER, TIME],
        }
    }
}

/// The values in the headers of a request.
struct Head<'a> {
    id: &'a str,
    user: &'a str,
    time: &'a str,
    signed_at: SystemTime,
    signature: Vec<u8>,
}

impl<'a> Head<'a> {
    fn read(headers: &'a HeaderMap) -> Result<Self, SignatureError> {
        let time = only_value(headers, &TIME)?;
        Ok(Self {
            id: only_value(headers, &REQUEST_ID)?,
            user: only_value(headers, &USER)?,
            time,
            signed_at: unix_time(time, TimeUnit::Seconds)
                .ok_or(SignatureError::MalformedHeader(TIME))?,
            signature: hex::decode(only_value(headers, &SIGNATURE)?)
                .map_err(|_| SignatureError::MalformedHeader(SIGNATURE))?,
        })
    }
}

/// The signed content. A header cannot contain a line break, so the lines are unambiguous.
fn message(id: &str, user: &str, time: &str, body: &[u8]) -> String {
    format!("{id}\n{user}\n{time}\n{}", sha256_hex(body))
}

impl SignatureScheme for Fal {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        Head::read(&head.headers).map(drop)
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let head = Head::read(request.headers())?;
        let message = message(head.id, head.user, head.time, request.body());
        request.check_signed_with_key_at(&self.keys, None, |key| {
            key.verify(ED25519, message.as_bytes(), &head.signature)
        })?;
        let is_ours = |secret: &Secret| secret.expose() == head.user.as_bytes();
        match secrets.iter().any(is_ours) {
            true => Ok(Signed::new().at(head.signed_at)),
            false => Err(SignatureError::NotForUs(
                "another user (`X-Fal-Webhook-User-Id`)",
            )),
        }
    }

    fn signed_headers(&self) -> &[HeaderName] {
        &self.signed
    }

    fn signs_time(&self) -> bool {
        true
    }

    fn description(&self) -> Cow<'static, str> {
        "Ed25519".into()
    }

    fn needs_keys(&self, _: &Secrets) -> bool {
        true
    }

    fn check_secret(&self, secret: &Secret) -> Result<(), SecretError> {
        secret.parse::<FalUser>().map(drop)
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        let FalUser { id: user } = secret.parse()?;
        let id = only_value(request.headers(), &REQUEST_ID)
            .map_err(|_| SignError::new("the header with the request id is missing"))?;
        let time = to_unix_time(request.time(), TimeUnit::Seconds).to_string();
        let message = message(id, &user, &time, request.body());
        let signature = request
            .signing_key()
            .and_then(|(_, key)| key.sign(ED25519, message.as_bytes()))
            .ok_or(SignError::no_key())?;
        request.insert_header(USER, user)?;
        request.insert_header(TIME, time)?;
        request.insert_header(SIGNATURE, hex::encode(signature))
    }
}
