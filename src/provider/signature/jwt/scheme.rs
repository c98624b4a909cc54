//! A configurable scheme for a token in a header.

use std::borrow::Cow;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use http::HeaderMap;
use http::header::{AUTHORIZATION, HeaderName};
use http::request::Parts;
use serde_json::{Value, json};

use super::compact::{Claims, Compact, encode};
use crate::provider::keys::KeyRequest;
use crate::provider::signature::digests::{Hash, hmac, sha256};
use crate::provider::signature::same_secret::is_same;
use crate::provider::signature::timestamp::{TimeUnit, to_unix_time};
use crate::provider::signature::{
    Encoding, PublicKey, SignError, SignatureAlgorithm, SignatureError, SignatureScheme, Signed,
    SignedRequest, UnsignedRequest, only_value,
};
use crate::provider::{Secret, Secrets};

/// A configurable scheme for a JSON Web Token (RFC 7519) in a header.
///
/// Only the algorithm that is set here is accepted: a token that names another algorithm, or `none`, is refused.
/// `exp` is required, while `nbf` and `iat` are optional. All three are checked with 60 seconds of
/// [leeway](Self::leeway). Of the token's header, only the algorithm and the key id are used. An address (`jku`,
/// `x5u`) or a key (`jwk`) in it is ignored.
///
/// If `iat` is present, it is the time of signing, which the [tolerance](crate::Provider::tolerance) bounds as
/// well: 5 minutes by default. If the provider sends the same token again, set the tolerance to the time for which
/// a token is valid.
///
/// A token covers the body only if it contains a [hash of the body](Self::body_hash). Otherwise, anyone who has
/// captured a token can send any body with it until the token expires.
///
/// ```
/// use idempotent_webhook::provider::keys::{KeyRequest, KeySource};
/// use idempotent_webhook::provider::signature::{Jwt, SignatureAlgorithm};
/// use idempotent_webhook::{Provider, Source};
///
/// # #[cfg(all(feature = "rsa", feature = "reqwest"))]
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let keys = KeyRequest::get("https://acme.example/.well-known/jwks.json");
/// let scheme = Jwt::public_key(SignatureAlgorithm::RsaSha256, keys)
///     .issuer("https://acme.example")
///     .audience("https://hooks.example.com");
/// let acme = Provider::custom("acme")
///     .signature(scheme, KeySource::https()?)
///     .delivery_id(Source::json("$.id".parse()?));
/// # Ok(())
/// # }
/// # #[cfg(not(all(feature = "rsa", feature = "reqwest")))]
/// # fn main() {}
/// ```
#[derive(Clone, Debug)]
pub struct Jwt {
    header: HeaderName,
    signing: Signing,
    issuers: Vec<Cow<'static, str>>,
    audience: Option<Cow<'static, str>>,
    body_hash: Option<(&'static str, Encoding)>,
    leeway: Duration,
    expires: bool,
}

#[derive(Clone, Debug)]
enum Signing {
    Hs256,
    Keys(SignatureAlgorithm, KeyRequest),
}

impl Signing {
    fn name(&self) -> Option<&'static str> {
        match self {
            Self::Hs256 => Some("HS256"),
            Self::Keys(algorithm, _) => algorithm.jws_name(),
        }
    }
}

impl Jwt {
    /// A token that is signed with HS256. The secret is its key.
    pub fn hs256() -> Self {
        Self::new(Signing::Hs256)
    }

    /// A token that is signed with a private key.
    ///
    /// The algorithm is RS256 ([`SignatureAlgorithm::RsaSha256`], feature `rsa`), ES256
    /// ([`SignatureAlgorithm::Es256`], feature `p256`) or another [`SignatureAlgorithm`]. The public keys are at an
    /// address, from which [`Provider::keys`](crate::Provider::keys) fetches them.
    ///
    /// # Panics
    ///
    /// If JSON Web Tokens are not signed by this algorithm.
    #[expect(clippy::panic, reason = "documented, and only at start")]
    pub fn public_key(algorithm: SignatureAlgorithm, keys: KeyRequest) -> Self {
        if algorithm.jws_name().is_none() {
            panic!("no JSON Web Token is signed by {algorithm:?}");
        }
        Self::new(Signing::Keys(algorithm, keys))
    }

    fn new(signing: Signing) -> Self {
        Self {
            header: AUTHORIZATION,
            signing,
            issuers: Vec::new(),
            audience: None,
            body_hash: None,
            leeway: Duration::from_secs(60),
            expires: true,
        }
    }

    /// The header that carries the token, with or without `Bearer` before the token. Default: `Authorization`.
    #[must_use]
    pub fn header(mut self, name: HeaderName) -> Self {
        self.header = name;
        self
    }

    /// The value of the claim `iss`. If you call it several times, any of the values is accepted. Default: any
    /// issuer.
    #[must_use]
    pub fn issuer(mut self, issuer: impl Into<Cow<'static, str>>) -> Self {
        self.issuers.push(issuer.into());
        self
    }

    /// The value of the claim `aud`, or one of its values if it is a list. Default: any audience.
    #[must_use]
    pub fn audience(mut self, audience: impl Into<Cow<'static, str>>) -> Self {
        self.audience = Some(audience.into());
        self
    }

    /// The claim that contains the SHA-256 of the body. Default: none, so the body is not covered.
    #[must_use]
    pub fn body_hash(mut self, claim: &'static str, encoding: Encoding) -> Self {
        self.body_hash = Some((claim, encoding));
        self
    }

    /// How far the clocks may differ, for `exp`, `nbf` and `iat`. Default: 60 seconds.
    #[must_use]
    pub fn leeway(mut self, leeway: Duration) -> Self {
        self.leeway = leeway;
        self
    }

    /// Allows `exp` to be absent, for tokens whose age is checked by `iat` and the
    /// [tolerance](crate::Provider::tolerance). A captured token without `exp` is valid forever, unless `iat` and the
    /// tolerance limit its age.
    #[must_use]
    pub fn without_expiry(mut self) -> Self {
        self.expires = false;
        self
    }

    fn malformed(&self) -> SignatureError {
        SignatureError::MalformedHeader(self.header.clone())
    }

    fn token<'a>(&self, headers: &'a HeaderMap) -> Result<Compact<'a>, SignatureError> {
        let value = only_value(headers, &self.header)?;
        let token = match value.split_once(' ') {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token,
            Some(_) | None => value,
        };
        let token = Compact::parse_value(token).ok_or_else(|| self.malformed())?;
        match self.signing.name() == Some(&*token.algorithm) {
            true => Ok(token),
            false => Err(SignatureError::OtherAlgorithm),
        }
    }

    /// The claims of a valid token. With HS256, its key must be one of `secrets`.
    pub(crate) fn open<'a>(
        &self,
        request: &SignedRequest<'_>,
        mut secrets: impl Iterator<Item = &'a [u8]>,
    ) -> Result<(Claims, Signed), SignatureError> {
        let token = self.token(request.headers())?;
        match &self.signing {
            Signing::Hs256 => {
                if !secrets.any(|secret| token.is_hmac(secret, &[Hash::Sha256])) {
                    return Err(SignatureError::NoMatch);
                }
            }
            Signing::Keys(algorithm, at) => {
                let message = token.signed().concat();
                let has_signed =
                    |key: &PublicKey| key.verify(*algorithm, &message, &token.signature);
                request.check_signed_with_key_at(at, token.key_id.as_deref(), has_signed)?;
            }
        }
        let claims = token.claims().ok_or_else(|| self.malformed())?;
        let signed = self.check(&claims, request.body())?;
        Ok((claims, signed))
    }

    fn check(&self, claims: &Claims, body: &[u8]) -> Result<Signed, SignatureError> {
        let issuer = claims.text("iss").unwrap_or_default();
        if !self.issuers.is_empty() && !self.issuers.iter().any(|known| known == issuer) {
            return Err(SignatureError::NotForUs("another issuer (`iss`)"));
        }
        if let Some(audience) = &self.audience
            && !claims.texts("aud").contains(&&**audience)
        {
            return Err(SignatureError::NotForUs("another audience (`aud`)"));
        }
        if let Some((claim, encoding)) = self.body_hash {
            let expected = encoding.encode(&sha256([body]));
            let presented = claims.text(claim).ok_or_else(|| self.malformed())?;
            if !is_same(expected.as_bytes(), presented.as_bytes()) {
                return Err(SignatureError::NoMatch);
            }
        }
        self.times(claims).ok_or_else(|| self.malformed())
    }

    /// When the token was signed, from when it is valid, and when it expires. `None` if a required time is missing, or
    /// a time is unusable.
    fn times(&self, claims: &Claims) -> Option<Signed> {
        let mut signed = Signed::new();
        if self.expires || claims.has("exp") {
            signed = signed.expires(claims.time("exp")?.checked_add(self.leeway)?);
        }
        let mut valid_from = None;
        if claims.has("nbf") {
            valid_from = Some(claims.time("nbf")?);
        }
        if !self.expires || claims.has("iat") {
            let issued = claims.time("iat")?;
            signed = signed.at(issued);
            valid_from = valid_from.max(Some(issued));
        }
        Some(match valid_from {
            Some(time) => signed.valid_from(time.checked_sub(self.leeway)?),
            None => signed,
        })
    }

    /// Signs a request, with additional claims.
    pub(crate) fn sign_with(
        &self,
        request: &mut UnsignedRequest,
        secret: &[u8],
        further: Value,
    ) -> Result<(), SignError> {
        let seconds = |time| u64::try_from(to_unix_time(time, TimeUnit::Seconds)).unwrap_or(0);
        let mut claims = json!({"iat": seconds(request.time())});
        let mut set = |name: &str, value: Value| {
            if let Some(claims) = claims.as_object_mut() {
                claims.insert(name.to_owned(), value);
            }
        };
        if self.expires {
            let expires = request.time() + Duration::from_secs(300);
            set("exp", seconds(expires).into());
        }
        if let Some(issuer) = self.issuers.first() {
            set("iss", issuer.as_ref().into());
        }
        if let Some(audience) = &self.audience {
            set("aud", audience.as_ref().into());
        }
        if let Some((claim, encoding)) = self.body_hash {
            set(claim, encoding.encode(&sha256([request.body()])).into());
        }
        if let Value::Object(further) = further {
            further
                .into_iter()
                .for_each(|(name, value)| set(&name, value));
        }
        let no_key = SignError::no_key();
        let key = match &self.signing {
            Signing::Hs256 => None,
            Signing::Keys(algorithm, _) => {
                Some((*algorithm, request.signing_key().ok_or(no_key.clone())?))
            }
        };
        let id = key.and_then(|(_, (id, _))| id);
        let mut header = json!({"alg": self.signing.name(), "typ": "JWT"});
        if let Some((id, header)) = id.zip(header.as_object_mut()) {
            header.insert("kid".to_owned(), id.into());
        }
        let signed = format!("{}.{}", encode(&header), encode(&claims));
        let signature = match key {
            None => hmac(Hash::Sha256, secret, [signed.as_bytes()]),
            Some((algorithm, (_, key))) => key.sign(algorithm, signed.as_bytes()).ok_or(no_key)?,
        };
        let token = format!("{signed}.{}", BASE64URL.encode(signature));
        let value = match self.header == AUTHORIZATION {
            true => format!("Bearer {token}"),
            false => token,
        };
        request.insert_header(self.header.clone(), value)
    }
}

impl SignatureScheme for Jwt {
    fn check_head(&self, head: &Parts) -> Result<(), SignatureError> {
        self.token(&head.headers).map(drop)
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let (_, signed) = self.open(request, secrets.iter().map(Secret::expose))?;
        Ok(signed)
    }

    fn signs_body(&self) -> bool {
        self.body_hash.is_some()
    }

    fn signs_time(&self) -> bool {
        true
    }

    fn description(&self) -> Cow<'static, str> {
        let name = self.signing.name().unwrap_or_default();
        match self.body_hash {
            Some(_) => format!("JWT, {name}, of the body").into(),
            None => format!("JWT, {name}").into(),
        }
    }

    fn needs_keys(&self, _: &Secrets) -> bool {
        matches!(self.signing, Signing::Keys(..))
    }

    fn takes_secrets(&self) -> bool {
        matches!(self.signing, Signing::Hs256)
    }

    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        self.sign_with(request, secret.expose(), Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn times_that_are_no_times_are_malformed() {
        let claims = |json: Value| match json {
            Value::Object(claims) => Claims::new(claims),
            _ => Claims::new(serde_json::Map::new()),
        };
        let jwt = Jwt::hs256();
        assert!(jwt.times(&claims(json!({"exp": 5}))).is_some());
        for wrong in [
            json!({}),
            json!({"exp": "5"}),
            json!({"exp": null}),
            json!({"exp": 5, "nbf": "now"}),
            json!({"exp": 5, "iat": []}),
        ] {
            assert!(jwt.times(&claims(wrong.clone())).is_none(), "{wrong}");
        }
        let aged = Jwt::hs256().without_expiry();
        assert_eq!(
            aged.times(&claims(json!({"iat": 5})))
                .and_then(|signed| signed.time()),
            Some(SystemTime::UNIX_EPOCH + Duration::from_secs(5))
        );
        assert!(aged.times(&claims(json!({}))).is_none());
    }
}
