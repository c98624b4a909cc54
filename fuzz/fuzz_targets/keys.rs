//! Keys from a key URL, and certificates in a request, verify only signatures of the right keys.
//!
//! Input: a byte that chooses one of the two, and its text. For a chain, the text is the day on which the chain is
//! checked (days since 1970) and the length of the first certificate, in two bytes each, and then both certificates.

#![no_main]

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use bytes::Bytes;
use fuzz::{now, senders};
use http::Request;
use http::request::Parts;
use idempotent_webhook::Provider;
use idempotent_webhook::provider::keys::KeySet;
use idempotent_webhook::provider::signature::{PublicKey, SignatureAlgorithm, X509Chain};
use idempotent_webhook::testing;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, crypto};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

const MESSAGE: &[u8] = b"message";

const RSA: &str = include_str!("../../tests/keys/rsa.pem");
const P256: &str = include_str!("../../tests/keys/p256.pem");
const ED25519: &str = include_str!("../../tests/keys/ed25519.json");
/// The key, its certificate, the issuer's certificate, and the root.
const APPLE: &str = include_str!("../../tests/keys/apple.pem");

fuzz_target!(init: { senders(); }, |data: &[u8]| match data {
    [0, text @ ..] => document(text),
    [1, high, low, first_high, first_low, chain @ ..] => {
        let day = u16::from_be_bytes([*high, *low]);
        let first = usize::from(u16::from_be_bytes([*first_high, *first_low]));
        if let Some((first, second)) = chain.split_at_checked(first) {
            certificates(day, first, second);
        }
    }
    [2, text @ ..] => certificate(text),
    _ => {}
});

/// A signature of the message, in base64url.
struct Signature {
    ours: SignatureAlgorithm,
    theirs: Algorithm,
    text: String,
}

impl Signature {
    fn of(ours: SignatureAlgorithm, theirs: Algorithm, key: EncodingKey) -> Self {
        let text = crypto::sign(MESSAGE, &key, theirs).expect("a signature");
        Self { ours, theirs, text }
    }

    fn es256(pem: &str) -> Self {
        let key = EncodingKey::from_ec_pem(pem.as_bytes()).expect("a key");
        Self::of(SignatureAlgorithm::Es256, Algorithm::ES256, key)
    }

    fn rs256() -> Self {
        let key = EncodingKey::from_rsa_pem(RSA.as_bytes()).expect("a key");
        Self::of(SignatureAlgorithm::RsaSha256, Algorithm::RS256, key)
    }

    fn ed25519() -> Self {
        /// PKCS #8, up to the key itself.
        const PKCS8: &str = "302e020100300506032b657004220420";
        let jwk: Value = serde_json::from_str(ED25519).expect("a key");
        let key = BASE64
            .decode(jwk["d"].as_str().expect("a key"))
            .expect("base64");
        let key = [hex::decode(PKCS8).expect("hex"), key].concat();
        Self::of(
            SignatureAlgorithm::Ed25519,
            Algorithm::EdDSA,
            EncodingKey::from_ed_der(&key),
        )
    }

    fn bytes(&self) -> Vec<u8> {
        BASE64.decode(&self.text).expect("base64")
    }
}

/// If the document contains JSON Web Keys, they verify the same signatures as with `jsonwebtoken`.
fn document(text: &[u8]) {
    static SIGNATURES: LazyLock<[Signature; 3]> = LazyLock::new(|| {
        [
            Signature::es256(P256),
            Signature::rs256(),
            Signature::ed25519(),
        ]
    });
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let Ok(keys) = KeySet::parse(text) else {
        return;
    };
    let document: Option<Value> = serde_json::from_str(text).ok();
    for signature in &*SIGNATURES {
        let verifies = |key| PublicKey::verify(key, signature.ours, MESSAGE, &signature.bytes());
        let is_signed = keys.iter().any(verifies);
        if let Some(keys) = document
            .as_ref()
            .filter(|_| is_signed)
            .and_then(json_web_keys)
        {
            assert!(keys.iter().any(|key| signature.is_of(key)), "{text}");
        }
    }
}

impl Signature {
    fn is_of(&self, key: &DecodingKey) -> bool {
        crypto::verify(&self.text, MESSAGE, key, self.theirs).unwrap_or(false)
    }
}

/// The public keys of a set, or the document if it is a key itself. `None` if there are keys of another form or private
/// keys among them.
fn json_web_keys(document: &Value) -> Option<Vec<DecodingKey>> {
    let keys = match document.get("keys") {
        Some(keys) => keys.as_array()?.iter().collect(),
        None => vec![document],
    };
    let is_other = |key: &&Value| {
        ["d", "data", "key", "publicKey", "public_keys"]
            .iter()
            .any(|name| key.get(*name).is_some())
    };
    if document.get("public_keys").is_some() || keys.iter().any(|key| is_other(key)) {
        return None;
    }
    // If there may be a member that `jsonwebtoken` does not know, only the key itself is read.
    let members = ["kty", "crv", "x", "y", "n", "e"];
    let keys = keys.into_iter().filter_map(|key| {
        let key: BTreeMap<_, _> = members
            .iter()
            .filter_map(|name| Some((name, key.get(name)?)))
            .collect();
        let key: Jwk = serde_json::from_value(serde_json::to_value(key).ok()?).ok()?;
        DecodingKey::from_jwk(&key).ok()
    });
    Some(keys.collect())
}

/// If a chain is accepted, it has the key that the root vouches for.
fn certificates(day: u16, first: &[u8], second: &[u8]) {
    static CHAIN: LazyLock<(X509Chain, Signature)> = LazyLock::new(|| {
        let root = APPLE.rfind("-----BEGIN CERTIFICATE-----").expect("a root");
        let chain = X509Chain::new(&APPLE[root..]).expect("a root");
        let chain = chain
            .leaf_extension("1.2.840.113635.100.6.11.1")
            .issuer_extension("1.2.840.113635.100.6.2.1");
        (chain, Signature::es256(APPLE))
    });
    let (chain, signature) = &*CHAIN;
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(u64::from(day) * 24 * 60 * 60);
    let sent = [first, second, &[]].map(<[u8]>::to_vec);
    if let Ok(key) = chain.verify(&sent, at) {
        assert!(
            key.verify(signature.ours, MESSAGE, &signature.bytes()),
            "another key"
        );
    }
}

/// A fetched certificate, as for SNS and PayPal.
fn certificate(text: &[u8]) {
    static SIGNED: LazyLock<[(Provider, Parts, Bytes); 2]> =
        LazyLock::new(|| [signed("aws-sns"), signed("paypal")]);
    let Ok(keys) = KeySet::parse(&String::from_utf8_lossy(text)) else {
        return;
    };
    for (provider, head, body) in &*SIGNED {
        let _ = provider
            .clone()
            .keys(keys.clone().into())
            .verify(head, body, now());
    }
}

/// A request signed by the test kit.
fn signed(name: &str) -> (Provider, Parts, Bytes) {
    let sender = senders()
        .iter()
        .find(|sender| sender.provider.name() == name)
        .expect("a preset");
    let request = Request::post("/")
        .body(Bytes::from("{}"))
        .expect("a request");
    let signed =
        testing::sign(&sender.provider, &sender.secret, request, now()).expect("a signature");
    let (head, body) = signed.into_parts();
    (sender.provider.clone(), head, body)
}
