//! Wix's token, which is the body.

use std::borrow::Cow;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD as BASE64, URL_SAFE_NO_PAD as BASE64URL};
use http::header::{CONTENT_TYPE, HeaderValue};
use serde_json::{Value, json};

use crate::provider::signature::jwt::{Claims, Compact, encode};
use crate::provider::signature::timestamp::{TimeUnit, to_unix_time};
use crate::provider::signature::{
    PublicKey, SignError, SignatureAlgorithm, SignatureError, SignatureScheme, Signed,
    SignedRequest, UnsignedRequest,
};
use crate::provider::{Secret, SecretError, Secrets};

/// The names of the values that are read from the token.
pub(super) const ID: &str = "id";
pub(super) const TYPE: &str = "eventType";

const ALGORITHM: &str = "RS256";
const RS256: SignatureAlgorithm = SignatureAlgorithm::RsaSha256;
const LEEWAY: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Wix;

/// The key in a secret: PEM, or the base64 of PEM.
fn key(secret: &Secret) -> Option<PublicKey> {
    let secret = secret.expose();
    match secret.starts_with(b"-----BEGIN ") {
        true => RS256.key_of(secret),
        false => RS256.key_of(&BASE64.decode(secret).ok()?),
    }
}

fn token(body: &[u8]) -> Option<Compact<'_>> {
    Compact::parse(std::str::from_utf8(body).ok()?)
}

/// The content of a valid token. `None` if a time or the event is missing or unusable.
fn read(claims: &Claims) -> Option<Signed> {
    let mut signed = Signed::new().expires(claims.time("exp")?.checked_add(LEEWAY)?);
    if claims.has("iat") {
        let issued = claims.time("iat")?;
        signed = signed.at(issued).valid_from(issued.checked_sub(LEEWAY)?);
    }
    let event: Value = serde_json::from_str(claims.text("data")?).ok()?;
    let inner: Value = serde_json::from_str(event.get("data")?.as_str()?).ok()?;
    for (name, value) in [(ID, inner.get("id")), (TYPE, event.get("eventType"))] {
        if let Some(value) = value.and_then(Value::as_str) {
            signed = signed.value(name, value);
        }
    }
    Some(signed)
}

impl SignatureScheme for Wix {
    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let token = token(request.body()).ok_or(SignatureError::MalformedBody)?;
        if token.algorithm != ALGORITHM {
            return Err(SignatureError::OtherAlgorithm);
        }
        let message = token.signed().concat();
        let mut error = SignatureError::NoMatch;
        let has_signed = |secret: &Secret| match key(secret) {
            Some(key) => key.verify(RS256, &message, &token.signature),
            None => {
                error = SignatureError::UnusableSecret;
                false
            }
        };
        if !secrets.iter().any(has_signed) {
            return Err(error);
        }
        let claims = token.claims();
        claims
            .and_then(|claims| read(&claims))
            .ok_or(SignatureError::MalformedBody)
    }

    fn signs_time(&self) -> bool {
        true
    }

    fn description(&self) -> Cow<'static, str> {
        "JWT, RS256, in the body".into()
    }

    fn check_secret(&self, secret: &Secret) -> Result<(), SecretError> {
        match key(secret) {
            Some(_) => Ok(()),
            None => Err(SecretError::new(
                "it is not an RSA key in PEM, nor the base64 of one",
            )),
        }
    }

    /// A test sets either the innermost JSON as the body, or a token, whose content is signed
    /// again.
    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        let known = token(request.body()).and_then(|token| token.claims());
        let data = match known.as_ref().and_then(|claims| claims.text("data")) {
            Some(data) => data.to_owned(),
            None => event(request.body())?.to_string(),
        };
        let seconds = |time| u64::try_from(to_unix_time(time, TimeUnit::Seconds)).unwrap_or(0);
        let claims = json!({
            "data": data,
            "iat": seconds(request.time()),
            "exp": seconds(request.time() + Duration::from_secs(3600)),
        });
        let header = json!({"alg": ALGORITHM, "typ": "JWT"});
        let signed = format!("{}.{}", encode(&header), encode(&claims));
        let signature = key(secret)
            .and_then(|key| key.sign(RS256, signed.as_bytes()))
            .ok_or(SignError::new("the secret is not a private key"))?;
        request.set_body(format!("{signed}.{}", BASE64URL.encode(signature)));
        let content_type = HeaderValue::from_static("text/plain");
        request.insert_header(CONTENT_TYPE, content_type)
    }
}

/// An event with this JSON. It gets an id if it has none.
fn event(inner: &[u8]) -> Result<Value, SignError> {
    let mut inner: Value = serde_json::from_slice(inner)
        .map_err(|_| SignError::new("the body is not the JSON that goes into the token"))?;
    let members = inner
        .as_object_mut()
        .ok_or(SignError::new("the body is not a JSON object"))?;
    members.entry(ID).or_insert(json!("delivery-1"));
    let text = |name: &str| inner.get(name).and_then(Value::as_str);
    let event_type = match (text("entityFqdn"), text("slug")) {
        (Some(entity), Some(slug)) => {
            let (module, name) = entity.rsplit_once('.').unwrap_or(("wix", entity));
            format!("{module}.{name}_{slug}")
        }
        (Some(_) | None, _) => "test".to_owned(),
    };
    Ok(json!({
        "data": inner.to_string(),
        "instanceId": "00000000-0000-4000-8000-000000000000",
        TYPE: event_type,
    }))
}
