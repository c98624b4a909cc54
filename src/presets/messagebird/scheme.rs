//! MessageBird's token, with hashes of the URL and the body, and Bird's HMAC.

use std::borrow::Cow;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, HeaderName};
use serde_json::json;

use crate::provider::digest::sha256_hex;
use crate::provider::signature::digests::{Hash, request_digest};
use crate::provider::signature::jwt::{Claims, Compact, sign_hs256};
use crate::provider::signature::same_secret::is_same;
use crate::provider::signature::timestamp::{TimeUnit, to_unix_time};
use crate::provider::signature::{
    Hmac, SignError, SignatureError, SignatureScheme, Signed, SignedContent, SignedRequest,
    UnsignedRequest,
};
use crate::provider::{Secret, Secrets};

/// The claim that identifies a token. For a request without a token, the value of this name is the
/// digest of its body.
pub(super) const ID: &str = "jti";

const TOKEN: HeaderName = HeaderName::from_static("messagebird-signature-jwt");
const ISSUER: &str = "MessageBird";
const ALLOWED: &[Hash] = &[Hash::Sha256, Hash::Sha384, Hash::Sha512];
const LEEWAY: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct MessageBird {
    bird: Hmac,
}

impl MessageBird {
    pub(super) fn new() -> Self {
        let signed = SignedContent::new()
            .timestamp()
            .text("\n")
            .url()
            .text("\n")
            .body_sha256();
        Self {
            bird: Hmac::base64(HeaderName::from_static("messagebird-signature"))
                .timestamp_header(HeaderName::from_static("messagebird-request-timestamp"))
                .signed(signed),
        }
    }
}

impl SignatureScheme for MessageBird {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        match has_token(&head.headers) {
            true => Compact::in_header(&head.headers, &TOKEN).map(drop),
            false => self.bird.check_head(head),
        }
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        if !has_token(request.headers()) {
            let signed = self.bird.verify(request, secrets)?;
            return Ok(signed.value(ID, sha256_hex(request.body())));
        }
        let token = Compact::in_header(request.headers(), &TOKEN)?;
        let matches = |secret: &Secret| token.is_hmac(secret.expose(), ALLOWED);
        if !secrets.iter().any(matches) {
            return Err(SignatureError::NoMatch);
        }
        let malformed = SignatureError::MalformedHeader(TOKEN);
        let claims = token.claims().ok_or(malformed.clone())?;
        if claims.text("iss") != Some(ISSUER) {
            return Err(malformed);
        }
        if !is_about(&claims, &request.url()?, request.body()) {
            return Err(SignatureError::NoMatch);
        }
        let times = claims.time("nbf").zip(claims.time("exp"));
        let (from, until) = times.ok_or(malformed.clone())?;
        let valid_from = from.checked_sub(LEEWAY).ok_or(malformed.clone())?;
        let expires = until.checked_add(LEEWAY).ok_or(malformed)?;
        let signed = Signed::new()
            .at(from)
            .valid_from(valid_from)
            .expires(expires);
        Ok(match claims.text(ID) {
            Some(id) => signed.value(ID, id),
            None => signed,
        })
    }

    /// The content that Bird signs. `None` for a token, which contains its own content.
    fn signed_content(
        &self,
        request: &SignedRequest<'_>,
    ) -> Result<Option<Vec<u8>>, SignatureError> {
        match has_token(request.headers()) {
            true => Ok(None),
            false => self.bird.signed_content(request),
        }
    }

    fn signs_time(&self) -> bool {
        true
    }

    fn signs_url(&self) -> bool {
        true
    }

    fn description(&self) -> Cow<'static, str> {
        "HMAC-SHA256 in base64, or a JWT, of the URL and the body".into()
    }

    /// Signs as Bird does, or as MessageBird does if the request already has a token.
    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        if !has_token(request.headers()) {
            return self.bird.sign(request, secret);
        }
        let seconds = |time| u64::try_from(to_unix_time(time, TimeUnit::Seconds)).unwrap_or(0);
        let url = request.url()?;
        let mut claims = json!({
            "iss": ISSUER,
            "nbf": seconds(request.time()),
            "exp": seconds(request.time() + Duration::from_secs(60)),
            // This id is the same for every request of one delivery.
            ID: request_digest(&url, request.body()),
            "url_hash": sha256_hex(url.as_bytes()),
        });
        if let Some(claims) = claims.as_object_mut()
            && !request.body().is_empty()
        {
            claims.insert("payload_hash".into(), sha256_hex(request.body()).into());
        }
        let token = sign_hs256(secret.expose(), &claims);
        request.insert_header(TOKEN, token)
    }
}

fn has_token(headers: &HeaderMap) -> bool {
    headers.contains_key(TOKEN)
}

/// Whether the claims are about this URL and this body. If the request has no body, its token has
/// no hash of a body.
fn is_about(claims: &Claims, url: &str, body: &[u8]) -> bool {
    let is_hash = |name, text: &[u8]| {
        let presented = claims.text(name);
        presented.is_some_and(|hash| is_same(sha256_hex(text).as_bytes(), hash.as_bytes()))
    };
    is_hash("url_hash", url.as_bytes())
        && match body.is_empty() {
            true => !claims.has("payload_hash"),
            false => is_hash("payload_hash", body),
        }
}
