//! Apple's token in the body, with its certificates.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD as BASE64, URL_SAFE_NO_PAD as BASE64URL};
use serde::Deserialize;
use serde_json::{Value, json};

use super::app::AppStoreApp;
use crate::provider::digest::sha256_hex;
use crate::provider::json_path::Match;
use crate::provider::signature::jwt::{Claims, Compact, encode};
use crate::provider::signature::timestamp::{TimeUnit, to_unix_time};
use crate::provider::signature::{
    CertificateError, SignError, SignatureAlgorithm, SignatureError, SignatureScheme, Signed,
    SignedRequest, UnsignedRequest, X509Chain,
};
use crate::provider::{Secret, SecretError, Secrets};

pub(super) const ID: &str = "notificationUUID";
pub(super) const TYPE: &str = "notificationType";

/// Apple Root CA - G3, valid until 2039. Its SHA-256 starts with `63343abf`, according to Apple's page of
/// certificates.
const ROOT: &str = include_str!("apple_root_ca_g3.pem");

/// Apple's certificate extensions: the first marks certificates that sign receipts, the second
/// their issuers.
const SIGNS_RECEIPTS: &str = "1.2.840.113635.100.6.11.1";
const ISSUES: &str = "1.2.840.113635.100.6.2.1";

const ES256: SignatureAlgorithm = SignatureAlgorithm::Es256;

/// The members of a payload that may name its app.
const ABOUT: [&str; 4] = ["data", "summary", "externalPurchaseToken", "appData"];

#[derive(Debug)]
pub(super) struct AppStore {
    /// An error only if the file of the root certificate is broken, which a test would show.
    chain: Result<X509Chain, CertificateError>,
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow, rename = "signedPayload")]
    payload: Cow<'a, str>,
}

impl AppStore {
    pub(super) fn new() -> Self {
        Self {
            chain: X509Chain::new(ROOT).map(of_apple),
        }
    }

    /// Apple's chain, or a chain that ends at a given root.
    fn chain(&self, request: &SignedRequest<'_>) -> Result<X509Chain, CertificateError> {
        match request.given_keys().map(|keys| keys.certificates().last()) {
            Some(Some(root)) => Ok(of_apple(X509Chain::of(root.clone()))),
            Some(None) => Err(CertificateError::Malformed),
            None => self.chain.clone(),
        }
    }
}

fn of_apple(chain: X509Chain) -> X509Chain {
    chain
        .leaf_extension(SIGNS_RECEIPTS)
        .issuer_extension(ISSUES)
}

/// The bundle id and the environment of a notification.
fn about(claims: &Claims) -> Option<(&str, &str)> {
    let about = ABOUT.iter().find_map(|name| claims.get(name))?;
    let text = |name| about.get(name).and_then(Value::as_str);
    let environment = match text("environment") {
        Some(environment) => environment,
        None if text("externalPurchaseId")?.starts_with("SANDBOX") => "Sandbox",
        None => "Production",
    };
    Some((text("bundleId")?, environment))
}

/// When the token was signed. The time is read before the signature is verified, because the certificates must have
/// been valid at that time.
fn signed_at(token: &Compact<'_>) -> Option<SystemTime> {
    let Match::Text(milliseconds) = token.unverified_claim("signedDate")? else {
        return None;
    };
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(milliseconds.parse().ok()?))
}

impl SignatureScheme for AppStore {
    fn verify(
        &self,
        request: &SignedRequest<'_>,
        secrets: &Secrets,
    ) -> Result<Signed, SignatureError> {
        let malformed = SignatureError::MalformedBody;
        let body: Body<'_> =
            serde_json::from_slice(request.body()).map_err(|_| malformed.clone())?;
        let token = Compact::parse(&body.payload).ok_or(malformed.clone())?;
        if ES256.jws_name() != Some(&*token.algorithm) {
            return Err(SignatureError::OtherAlgorithm);
        }
        let time = signed_at(&token).ok_or(malformed.clone())?;
        let key = self.chain(request)?.verify(&token.certificates, time)?;
        if !key.verify(ES256, &token.signed().concat(), &token.signature) {
            return Err(SignatureError::NoMatch);
        }
        let claims = token.claims().ok_or(malformed.clone())?;
        let about = about(&claims).ok_or(malformed.clone())?;
        let mut apps = secrets.iter().filter_map(|secret| secret.parse().ok());
        if !apps.any(|app: AppStoreApp| (&*app.bundle_id, app.environment) == about) {
            return Err(SignatureError::NotForUs(
                "another app, or another environment",
            ));
        }
        let kind = claims.text(TYPE).ok_or(malformed)?;
        let signed = Signed::new().at(time).value(TYPE, kind);
        Ok(match claims.text(ID) {
            Some(id) => signed.value(ID, id),
            None => signed,
        })
    }

    /// The body may have other members, which the signature does not cover.
    fn signs_body(&self) -> bool {
        false
    }

    fn signs_value(&self, _: &str) -> bool {
        true
    }

    fn signs_time(&self) -> bool {
        true
    }

    fn description(&self) -> Cow<'static, str> {
        "JWS, ES256, with its certificates, in the body".into()
    }

    fn check_secret(&self, secret: &Secret) -> Result<(), SecretError> {
        secret.parse::<AppStoreApp>().map(drop)
    }

    /// A test sets the notification as the body, and missing members are added. The given keys are the private key
    /// and the three certificates.
    fn sign(&self, request: &mut UnsignedRequest, secret: &Secret) -> Result<(), SignError> {
        let app: AppStoreApp = secret.parse()?;
        let no_key = SignError::new("there is no private key with its certificates to sign with");
        let keys = request.given_keys().ok_or(no_key.clone())?.clone();
        let Ok(Value::Object(mut claims)) = serde_json::from_slice(request.body()) else {
            return Err(SignError::new("the body is not a JSON object"));
        };
        let milliseconds = to_unix_time(request.time(), TimeUnit::Milliseconds);
        let about = json!({"bundleId": app.bundle_id, "environment": app.environment});
        for (name, value) in [
            (ID, json!(sha256_hex(request.body()))),
            (TYPE, json!("TEST")),
            (
                "signedDate",
                json!(u64::try_from(milliseconds).unwrap_or(0)),
            ),
            ("data", about),
        ] {
            claims.entry(name).or_insert(value);
        }
        let certificates = keys.certificates().iter();
        let chain: Vec<_> = certificates
            .map(|one| BASE64.encode(one.to_der()))
            .collect();
        let header = encode(&json!({"alg": ES256.jws_name(), "x5c": chain}));
        let signed = format!("{header}.{}", encode(&Value::Object(claims)));
        let signature = keys
            .first()
            .and_then(|(_, key)| key.sign(ES256, signed.as_bytes()))
            .ok_or(no_key)?;
        let token = format!("{signed}.{}", BASE64URL.encode(signature));
        request.set_body(json!({"signedPayload": token}).to_string());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::keys::KeySet;

    /// From the test suite of Apple's own library.
    const REAL: &str = include_str!("signed_by_apple.pem");

    #[test]
    fn a_chain_of_apples_ends_at_the_root() -> Result<(), Box<dyn std::error::Error>> {
        let keys = KeySet::parse(REAL)?;
        let certificates = keys.certificates().iter();
        let sent: Vec<_> = certificates.map(|one| one.to_der().to_vec()).collect();
        let chain = AppStore::new().chain?;
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        // The chain is valid on 2026-01-01. At the other two times, the leaf certificate was not valid.
        assert!(chain.verify(&sent, at(1_767_225_600)).is_ok());
        let fault = |time| chain.verify(&sent, time).err();
        assert_eq!(
            fault(at(1_735_689_600)),
            Some(CertificateError::NotYetValid)
        );
        assert_eq!(fault(at(1_861_920_000)), Some(CertificateError::Expired));
        Ok(())
    }
}
