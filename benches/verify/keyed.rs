//! Deliveries that are signed with private keys, and one that is signed with an HMAC for comparison. The public keys
//! are given, so nothing is fetched.

use bytes::Bytes;
use idempotent_webhook::presets::{self, AppStoreApp, SnsTopic};
use idempotent_webhook::provider::keys::{KeyRequest, KeySource};
use idempotent_webhook::provider::signature::{Encoding, Hmac, Jwt, SignatureAlgorithm, Tolerance};
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{Provider, Secret, Source};
use serde_json::json;

use crate::deliveries::{Input, SECRET};

const RSA: &str = include_str!("../../tests/keys/rsa.pem");
const P256: &str = include_str!("../../tests/keys/p256.pem");
/// An RSA private key and its certificate.
const SNS: &str = include_str!("../../tests/keys/sns.pem");
/// A P-256 private key, and a chain of three certificates.
const APPLE: &str = include_str!("../../tests/keys/apple.pem");

/// The name of a case, and the function that makes its input from a body. Each signature covers the body.
type Case = (&'static str, fn(&str) -> Input);

pub const CASES: [Case; 5] = [
    ("HMAC-SHA256", |body| {
        let scheme = Hmac::hex(http::HeaderName::from_static("x-signature"));
        let secret = Secret::new(SECRET).unwrap();
        let provider = Provider::custom("acme").signature(scheme, secret);
        input(provider.delivery_id(Source::body_digest()), body.to_owned())
    }),
    ("JWT, RS256", |body| {
        jwt(SignatureAlgorithm::RsaSha256, RSA, body)
    }),
    ("JWT, ES256", |body| {
        jwt(SignatureAlgorithm::Es256, P256, body)
    }),
    ("aws-sns, a certificate", |body| {
        let topic = SnsTopic::new("arn:aws:sns:us-east-1:123456789012:orders").unwrap();
        let keys = KeySource::given(SNS).unwrap();
        let message = json!({"Message": body});
        input(presets::aws_sns(topic).keys(keys), message.to_string())
    }),
    ("apple-app-store, a chain of three", |body| {
        let app = AppStoreApp::new("com.example.app").unwrap();
        let keys = KeySource::given(APPLE).unwrap();
        let payload = json!({"event": body});
        input(
            presets::apple_app_store(app).keys(keys),
            payload.to_string(),
        )
    }),
];

/// A token with the hash of the body.
fn jwt(algorithm: SignatureAlgorithm, key: &str, body: &str) -> Input {
    let at = KeyRequest::get("https://keys.acme.test/jwks.json");
    let scheme = Jwt::public_key(algorithm, at)
        .issuer("https://acme.test")
        .audience("us")
        .body_hash("body", Encoding::Hex);
    let provider = Provider::custom("acme")
        .signature(scheme, KeySource::given(key).unwrap())
        .delivery_id(Source::body_digest());
    input(provider, body.to_owned())
}

fn input(provider: Provider, body: String) -> Input {
    let delivery = TestDelivery::new(&provider).body(body);
    let (head, body) = delivery.request::<Bytes>().into_parts();
    (provider.tolerance(Tolerance::unlimited()), head, body)
}
