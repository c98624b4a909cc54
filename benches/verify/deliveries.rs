//! Signed deliveries, the same for every benchmark that verifies some.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use http::Request;
use http::request::Parts;
use idempotent_webhook::{Provider, Secret, Tolerance};
use sha2::Sha256;

pub const SECRET: &str = "benchmark";

/// When Stripe signed, in Unix seconds.
pub const SIGNED_AT: u64 = 1_750_000_000;

pub const SIZES: [(&str, usize); 4] = [
    ("3 KB", 3_000),
    ("100 KB", 100_000),
    ("1 MB", 1_000_000),
    ("25 MB", 25_000_000),
];

/// An event of about so many bytes, much like Stripe's: its id first, its type last.
pub fn event(size: usize) -> Vec<u8> {
    let line = r#"{"id":"li_1Qx","object":"item","amount_total":1000,"currency":"eur","description":"A \"fine\" thing","adjustable":true,"livemode":false,"metadata":{},"period":{"end":1750003600,"start":1750000000},"price":null,"proration":false,"quantity":1,"tax_rates":[]}"#;
    let lines = vec![line; size / line.len()].join(",\n        ");
    format!(
        r#"{{"id":"evt_1Qx","object":"event","api_version":null,"created":{SIGNED_AT},"data":{{"object":{{"object":"quote","line_items":[{lines}]}}}},"livemode":false,"pending_webhooks":1,"request":null,"type":"quote.accepted"}}"#
    )
    .into_bytes()
}

/// The HMAC-SHA256 of the parts, one after the other.
pub fn mac(key: &[u8], signed: &[&[u8]]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    for part in signed {
        mac.update(part);
    }
    mac.finalize().into_bytes().to_vec()
}

pub fn head(headers: &[(&str, String)]) -> Parts {
    let mut request = Request::builder();
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    request.body(()).unwrap().into_parts().0
}

fn secret() -> Secret {
    Secret::new(SECRET).unwrap()
}

/// The preset, and the head of a request for the body.
pub fn stripe(body: &[u8]) -> (Provider, Parts) {
    let time = SIGNED_AT.to_string();
    let signature = mac(SECRET.as_bytes(), &[time.as_bytes(), b".", body]);
    let signature = format!("t={time},v1={}", hex::encode(signature));
    (
        Provider::stripe(secret()).tolerance(Tolerance::unlimited()),
        head(&[("stripe-signature", signature)]),
    )
}

/// The preset, and the head of a request for the body.
pub fn github(body: &[u8]) -> (Provider, Parts) {
    let signature = hex::encode(mac(SECRET.as_bytes(), &[body]));
    (
        Provider::github(secret()),
        head(&[
            ("x-hub-signature-256", format!("sha256={signature}")),
            ("x-github-delivery", "72d3162e-cc78-11e3-81ab".into()),
            ("x-github-event", "push".into()),
        ]),
    )
}

/// The preset, and the head of a request for the body.
#[allow(dead_code, reason = "not every benchmark has all presets")]
pub fn shopify(body: &[u8]) -> (Provider, Parts) {
    let signature = BASE64.encode(mac(SECRET.as_bytes(), &[body]));
    (
        Provider::shopify(secret()),
        head(&[
            ("x-shopify-hmac-sha256", signature),
            ("x-shopify-webhook-id", "b54557e4-bdd9-4b37-8a5f".into()),
            ("x-shopify-topic", "orders/create".into()),
        ]),
    )
}
