//! Signed deliveries, which are the same for every benchmark that verifies deliveries.

use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use http::request::Parts;
use idempotent_webhook::provider::SecretSource;
use idempotent_webhook::provider::signature::Tolerance;
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{Provider, Secret, presets};
use sha2::Sha256;

pub const SECRET: &str = "benchmark";

/// The secret in the form that Standard Webhooks uses.
pub const BASE64_SECRET: &str = "whsec_YmVuY2htYXJr";

pub const SIZES: [(&str, usize); 4] = [
    ("3 KB", 3_000),
    ("100 KB", 100_000),
    ("1 MB", 1_000_000),
    ("25 MB", 25_000_000),
];

/// An event of about this many bytes, similar to Stripe's: its id comes first, and its type last.
pub fn event(size: usize) -> Vec<u8> {
    let line = r#"{"id":"li_1Qx","object":"item","amount_total":1000,"currency":"eur","description":"A \"fine\" thing","adjustable":true,"livemode":false,"metadata":{},"period":{"end":1750003600,"start":1750000000},"price":null,"proration":false,"quantity":1,"tax_rates":[]}"#;
    let lines = vec![line; size / line.len()].join(",\n        ");
    format!(
        r#"{{"id":"evt_1Qx","object":"event","api_version":null,"created":1750000000,"data":{{"object":{{"object":"quote","line_items":[{lines}]}}}},"livemode":false,"pending_webhooks":1,"request":null,"type":"quote.accepted"}}"#
    )
    .into_bytes()
}

/// The HMAC-SHA256 of the concatenated parts.
pub fn mac(key: &[u8], signed: &[&[u8]]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    for part in signed {
        mac.update(part);
    }
    mac.finalize().into_bytes().to_vec()
}

/// A preset that tolerates any age, the head of a request, and its body.
pub type Input = (Provider, Parts, Bytes);

/// The name of a preset, and the function that makes its input from a body.
type Preset = (&'static str, fn(&[u8]) -> Input);

/// Each preset with the function that makes the request that it verifies. If the provider sends the
/// id or the time in the body, the function writes them into the body.
#[allow(dead_code, reason = "not every benchmark has all presets")]
pub const PRESETS: [Preset; 8] = [
    ("stripe", stripe),
    ("github", github),
    ("shopify", |body| input(presets::shopify, SECRET, body)),
    ("slack", |body| input(presets::slack, SECRET, body)),
    ("linear", |body| input(presets::linear, SECRET, body)),
    ("standard-webhooks", standard_webhooks),
    ("svix", |body| input(presets::svix, BASE64_SECRET, body)),
    ("awardee", |body| input(presets::awardee, SECRET, body)),
];

pub fn stripe(body: &[u8]) -> Input {
    input(presets::stripe, SECRET, body)
}

pub fn github(body: &[u8]) -> Input {
    input(presets::github, SECRET, body)
}

pub fn standard_webhooks(body: &[u8]) -> Input {
    input(presets::standard_webhooks, BASE64_SECRET, body)
}

/// Every preset with a body from the test kit, except presets that need a private key to sign.
#[allow(dead_code, reason = "not every benchmark has all presets")]
pub fn all() -> Vec<(&'static str, Input)> {
    let secrets = [
        SECRET,
        BASE64_SECRET,
        "YmVuY2htYXJr",
        "user:password",
        "abcdef01",
    ];
    let input = |preset: &presets::Preset, secret: &'static str| {
        let provider = preset
            .provider(Secret::new(secret).unwrap())
            .public_url("https://example.com".parse().unwrap());
        provider.check_secrets().ok()?;
        let delivery = TestDelivery::new(&provider);
        let (head, body) = delivery.try_request::<Bytes>().ok()?.into_parts();
        let now = std::time::SystemTime::now();
        provider.verify(&head, &body, now).ok()?.delivery()?;
        Some((provider.tolerance(Tolerance::unlimited()), head, body))
    };
    let all = presets::ALL.iter().filter_map(|preset| {
        let input = secrets.into_iter().find_map(|secret| input(preset, secret));
        Some((preset.name(), input?))
    });
    all.collect()
}

/// The input is signed just now, because some presets insist on a recent time.
fn input(preset: fn(SecretSource) -> Provider, secret: &'static str, body: &[u8]) -> Input {
    let provider = preset(Secret::new(secret).unwrap().into());
    let delivery = TestDelivery::new(&provider).body(body);
    let (head, body) = delivery.request().into_parts();
    (provider.tolerance(Tolerance::unlimited()), head, body)
}
