//! A JSON Web Token must be valid if it is valid for the crate `jsonwebtoken`, which also signs it.
//!
//! Input: the algorithm and the settings, a position in the token (two bytes), the byte to write there (0 means none),
//! and then lines: the header, the claims (in which `$hash` is the SHA-256 of the body), and the body.
//!
//! The crate is stricter for stated reasons:
//! - A header with `crit` names extensions that must be understood. The crate understands none.
//! - `iss` is one text.
//! - `iat` is not in the future.
//! - A time that this machine's clock cannot show is ignored.
//! - A token in a header has at most 16 KiB.
//!
//! The crate ignores members that it does not use. A header may therefore have members that `jsonwebtoken` cannot read,
//! and if two members have the same name, the last one counts (RFC 7515 and RFC 7519, section 4). The signature and the
//! algorithm are still compared.

#![no_main]

use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use http::Request;
use http::header::AUTHORIZATION;
use idempotent_webhook::provider::keys::{KeyRequest, KeySource};
use idempotent_webhook::provider::signature::{Encoding, Jwt, SignatureAlgorithm, Tolerance};
use idempotent_webhook::{Provider, Secret, Source};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Validation, crypto};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

const LEEWAY: u64 = 60;
const MAX_TOKEN: usize = 16 * 1024;
const ISSUER: &str = "https://acme.example";
const AUDIENCE: &str = "https://hooks.example.com";
const HASH: &str = "hash";

const RSA: &str = include_str!("../../tests/keys/rsa.pem");
const P256: &str = include_str!("../../tests/keys/p256.pem");
const ED25519: &str = include_str!("../../tests/keys/ed25519.json");

static KEYS: LazyLock<[Key; 4]> =
    LazyLock::new(|| [Key::hs256(), Key::es256(), Key::ed25519(), Key::rs256()]);

fuzz_target!(|data: &[u8]| {
    let Some(([choice, high, low, byte], text)) = data.split_first_chunk::<4>() else {
        return;
    };
    let mut lines = text.splitn(3, |byte| *byte == b'\n');
    let mut next = || lines.next().unwrap_or_default();
    let (header, claims, body) = (next(), next(), next());
    let key = &KEYS[usize::from(*choice) % KEYS.len()];
    let checks = Checks {
        names: choice & 0x10 != 0,
        hash: choice & 0x20 != 0,
    };
    let hash = hex::encode(Sha256::digest(body));
    let claims = String::from_utf8_lossy(claims).replace("$hash", &hash);
    let message = format!("{}.{}", BASE64.encode(header), BASE64.encode(claims));
    let signature =
        crypto::sign(message.as_bytes(), &key.private, key.algorithm).expect("a signature");
    let mut token = format!("{message}.{signature}").into_bytes();
    if *byte != 0 {
        let place = usize::from(u16::from_be_bytes([*high, *low])) % token.len();
        token[place] = *byte;
    }
    let Ok(token) = String::from_utf8(token) else {
        return;
    };
    compare(key, checks, &token, body);
});

/// The claims that a token must have in addition to the times.
#[derive(Clone, Copy)]
struct Checks {
    /// The issuer and the audience.
    names: bool,
    /// The hash of the body. `jsonwebtoken` does not know this claim.
    hash: bool,
}

fn compare(key: &Key, checks: Checks, token: &str, body: &[u8]) {
    let now = SystemTime::now();
    let ours = key.accepts(checks, token, body, now);
    let theirs =
        jsonwebtoken::decode::<Map<String, Value>>(token, &key.public, &validation(key, checks));
    let parts: Vec<&str> = token.split('.').collect();
    let [header, claims, signature] = parts[..] else {
        return assert!(!ours && theirs.is_err(), "{token}");
    };
    let (header, claims) = (document(header), document(claims));
    let seconds = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .expect("a time")
        .as_secs_f64();
    if is_close(&claims, seconds) {
        // A new second may have started for `jsonwebtoken`, which reads the clock itself.
        return;
    }
    let has_hash = !checks.hash || claims[HASH] == hex::encode(Sha256::digest(body));
    if ours {
        let message = token.rsplit_once('.').expect("a token").0.as_bytes();
        let is_signed = crypto::verify(signature, message, &key.public, key.algorithm);
        assert!(
            is_signed.is_ok_and(|is_signed| is_signed),
            "the signature of {token}"
        );
        assert_eq!(
            header["alg"],
            format!("{:?}", key.algorithm),
            "the algorithm of {token}"
        );
        assert!(has_hash, "the hash in {token}");
        let is_readable = |error: &Error| !matches!(error.kind(), ErrorKind::Json(_));
        if let Some(error) = theirs.err().filter(is_readable) {
            panic!("{error:?}: {header} {claims}");
        }
    } else if let Ok(theirs) = theirs
        && has_hash
        && token.len() <= MAX_TOKEN
    {
        assert!(
            is_stricter(&header, &claims, checks, seconds),
            "refused: {theirs:?}"
        );
    }
}

/// Whether the crate has a reason to be stricter than `jsonwebtoken`.
fn is_stricter(header: &Value, claims: &Value, checks: Checks, now: f64) -> bool {
    /// Later than the clock of this machine can show.
    const FOREVER: f64 = 9e18;
    let time = |name: &str| {
        claims
            .get(name)
            .map(|time| time.as_f64().unwrap_or(f64::INFINITY))
    };
    let has_come = time("iat").is_none_or(|time| time >= 0.0 && time <= now + LEEWAY as f64);
    let is_possible = ["exp", "nbf"]
        .iter()
        .all(|name| time(name).is_none_or(|time| time < FOREVER));
    header.get("crit").is_some()
        || checks.names && !claims["iss"].is_string()
        || !has_come
        || !is_possible
}

fn document(part: &str) -> Value {
    let json = BASE64.decode(part).unwrap_or_default();
    serde_json::from_slice(&json).unwrap_or_default()
}

fn is_close(claims: &Value, now: f64) -> bool {
    let close = |time: f64| (time.abs() - LEEWAY as f64).abs() < 3.0;
    let times = ["exp", "iat", "nbf"]
        .iter()
        .filter_map(|name| claims.get(name)?.as_f64());
    times.into_iter().any(|time| close(time - now))
}

fn validation(key: &Key, checks: Checks) -> Validation {
    let mut validation = Validation::new(key.algorithm);
    validation.leeway = LEEWAY;
    validation.validate_nbf = true;
    validation.validate_aud = checks.names;
    if checks.names {
        validation.set_issuer(&[ISSUER]);
        validation.set_audience(&[AUDIENCE]);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
    }
    validation
}

struct Key {
    algorithm: Algorithm,
    private: EncodingKey,
    public: DecodingKey,
    scheme: Jwt,
    /// `None` if it is the secret.
    ours: Option<KeySource>,
}

impl Key {
    fn hs256() -> Self {
        Self {
            algorithm: Algorithm::HS256,
            private: EncodingKey::from_secret(b"secret"),
            public: DecodingKey::from_secret(b"secret"),
            scheme: Jwt::hs256(),
            ours: None,
        }
    }

    fn es256() -> Self {
        let private = EncodingKey::from_ec_pem(P256.as_bytes()).expect("a key");
        Self::pair(Algorithm::ES256, SignatureAlgorithm::Es256, private, P256)
    }

    fn rs256() -> Self {
        let private = EncodingKey::from_rsa_pem(RSA.as_bytes()).expect("a key");
        Self::pair(
            Algorithm::RS256,
            SignatureAlgorithm::RsaSha256,
            private,
            RSA,
        )
    }

    fn pair(
        algorithm: Algorithm,
        ours: SignatureAlgorithm,
        private: EncodingKey,
        key: &str,
    ) -> Self {
        let jwk = Jwk::from_encoding_key(&private, algorithm).expect("a key");
        let public = DecodingKey::from_jwk(&jwk).expect("a key");
        Self::new(algorithm, ours, private, public, key)
    }

    fn ed25519() -> Self {
        /// PKCS #8, up to the key itself.
        const PKCS8: &str = "302e020100300506032b657004220420";
        let jwk: Value = serde_json::from_str(ED25519).expect("a key");
        let part = |name: &str| jwk[name].as_str().expect("a part of the key");
        let mut der = hex::decode(PKCS8).expect("hex");
        der.extend(BASE64.decode(part("d")).expect("base64"));
        let private = EncodingKey::from_ed_der(&der);
        let public = DecodingKey::from_ed_components(part("x")).expect("a key");
        Self::new(
            Algorithm::EdDSA,
            SignatureAlgorithm::Ed25519,
            private,
            public,
            ED25519,
        )
    }

    fn new(
        algorithm: Algorithm,
        ours: SignatureAlgorithm,
        private: EncodingKey,
        public: DecodingKey,
        key: &str,
    ) -> Self {
        Self {
            algorithm,
            private,
            public,
            scheme: Jwt::public_key(ours, KeyRequest::get("https://acme.example/keys")),
            ours: Some(KeySource::given(key).expect("a key")),
        }
    }

    fn accepts(&self, checks: Checks, token: &str, body: &[u8], now: SystemTime) -> bool {
        let mut scheme = self.scheme.clone().leeway(Duration::from_secs(LEEWAY));
        if checks.names {
            scheme = scheme.issuer(ISSUER).audience(AUDIENCE);
        }
        if checks.hash {
            scheme = scheme.body_hash(HASH, Encoding::Hex);
        }
        let secret = Secret::new("secret").expect("a secret");
        let mut provider = Provider::custom("acme")
            .signature(scheme, secret)
            .delivery_id(Source::body_digest())
            .tolerance(Tolerance::unlimited());
        if let Some(keys) = &self.ours {
            provider = provider.keys(keys.clone());
        }
        let request = Request::post("/").header(AUTHORIZATION, format!("Bearer {token}"));
        let Ok(request) = request.body(()) else {
            return false;
        };
        let (head, ()) = request.into_parts();
        provider.verify(&head, body, now).is_ok()
    }
}
