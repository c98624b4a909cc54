//! Plaid's token, with a hash of the body.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use http::HeaderName;
use http::request::Parts;
use serde_json::json;

use super::keys::{Keys, PlaidKeys};
use crate::provider::digest::sha256_hex;
use crate::provider::keys::{KeyRequest, KeySet};
use crate::provider::signature::jwt::{Compact, encode};
use crate::provider::signature::same_secret::is_same;
use crate::provider::signature::timestamp::{TimeUnit, to_unix_time};
use crate::provider::signature::{
    PublicKey, SignError, SignatureAlgorithm, SignatureError, SignatureScheme, Signed,
    SignedRequest, UnsignedRequest, signed_under_one_of,
};
use crate::provider::{Secret, SecretError, Secrets};

/// The name of the value that distinguishes a token from others.
pub(super) const TOKEN_ID: &str = "token";

const TOKEN: HeaderName = HeaderName::from_static("plaid-verification");
const ALGORITHM: &str = "ES256";
const BODY_HASH: &str = "request_body_sha256";

/// The maximum length of a key id that is looked up. Plaid's ids are UUIDs.
const MAX_KEY_ID: usize = 64;
const ES256: SignatureAlgorithm = SignatureAlgorithm::Es256;

#[derive(Debug)]
pub(super) struct Plaid;

impl Keys {
    fn of(secret: &Secret) -> Result<Self, SecretError> {
        let PlaidKeys(keys) = secret.parse()?;
        Ok(keys)
    }

    /// The given key, unless it has expired since.
    fn given(&self) -> Option<KeySet> {
        match self {
            Self::Given(key) => KeySet::parse(key.as_text().ok()?).ok(),
            Self::Fetched { .. } => None,
        }
    }

    /// Whether the key with this id has signed a request.
    fn have_signed(
        &self,
        request: &SignedRequest<'_>,
        id: &str,
        has_signed: impl Fn(&PublicKey) -> bool,
    ) -> Result<bool, SignatureError> {
        let Self::Fetched {
            is_sandbox,
            client_id,
            secret,
        } = self
        else {
            let given = self.given().ok_or(SignatureError::UnusableSecret)?;
            return Ok(given.with_id(id).any(has_signed));
        };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if id.len() > MAX_KEY_ID || !id.chars().all(is_plain) {
            return Err(SignatureError::UnknownKey);
        }
        let host = match is_sandbox {
            true => "sandbox.plaid.com",
            false => "production.plaid.com",
        };
        let url = format!("https://{host}/webhook_verification_key/get");
        let secret = String::from_utf8_lossy(secret.expose());
        let asked = json!({"client_id": client_id, "secret": secret, "key_id": id});
        let at = KeyRequest::get(url).post_json(&asked).account(client_id);
        request.check_signed_with_key_at(&at, Some(id), has_signed)?;
        Ok(true)
    }
}

impl SignatureScheme for Plaid {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        Compact::in_header(&head.headers, &TOKEN).map(drop)
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let token = Compact::in_header(request.headers(), &TOKEN)?;
        if token.algorithm != ALGORITHM {
            return Err(SignatureError::OtherAlgorithm);
        }
        let id = token.key_id.as_deref().unwrap_or_default();
        let message = token.signed().concat();
        signed_under_one_of(request, secrets, |secret| {
            let keys = Keys::of(secret).map_err(|_| SignatureError::UnusableSecret)?;
            keys.have_signed(request, id, |key| {
                key.verify(ES256, &message, &token.signature)
            })
        })?;
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

    fn dummy_secret(&self) -> Secret {
        let nobodys = PlaidKeys::production("nobody", Secret::dummy());
        nobodys.map_or_else(|_| Secret::dummy(), Secret::from)
    }

    fn needs_keys(&self, secrets: &Secrets) -> bool {
        let mut keys = secrets.iter().map(Keys::of);
        keys.any(|keys| matches!(keys, Ok(Keys::Fetched { .. })))
    }

    fn check_secret(&self, secret: &Secret) -> Result<(), SecretError> {
        secret.parse::<PlaidKeys>().map(drop)
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        let given = Keys::of(secret)?.given();
        let own = given.as_ref().and_then(|keys| keys.first());
        let (id, key) = own.or(request.signing_key()).ok_or(SignError::no_key())?;
        let time = u64::try_from(to_unix_time(request.time(), TimeUnit::Seconds)).unwrap_or(0);
        let header = json!({"alg": ALGORITHM, "kid": id, "typ": "JWT"});
        let claims = json!({"iat": time, BODY_HASH: sha256_hex(request.body())});
        let signed = format!("{}.{}", encode(&header), encode(&claims));
        let signature = key
            .sign(ES256, signed.as_bytes())
            .ok_or(SignError::new("the secret is not a private key"))?;
        let token = format!("{signed}.{}", BASE64URL.encode(signature));
        request.insert_header(TOKEN, token)
    }
}
