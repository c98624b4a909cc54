//! Verification and identification without a database, beside what limits it.
//!
//!     cargo bench --bench verify
//!
//! `benches/README.md` says how to read it.

#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    missing_docs,
    reason = "a benchmark that fails may panic, and its macros document nothing"
)]

use std::hint::black_box;
use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use hmac::{Hmac, KeyInit, Mac};
use http::Request;
use http::request::Parts;
use idempotent_webhook::{JsonPath, Provider, Secret, Source, Tolerance};
use serde_json::Value;
use sha2::Sha256;

const SECRET: &str = "benchmark";

const SIZES: [(&str, usize); 4] = [
    ("3 KB", 3_000),
    ("100 KB", 100_000),
    ("1 MB", 1_000_000),
    ("25 MB", 25_000_000),
];

/// An event of about so many bytes, much like Stripe's: its id first, its type last.
fn event(size: usize) -> Vec<u8> {
    let line = r#"{"id":"il_1Qx","object":"line_item","amount":1000,"currency":"eur","description":"A \"fine\" thing","discountable":true,"livemode":false,"metadata":{},"period":{"end":1750003600,"start":1750000000},"price":null,"proration":false,"quantity":1,"tax_rates":[]}"#;
    let lines = vec![line; size / line.len()].join(",\n        ");
    format!(
        r#"{{"id":"evt_1Qx","object":"event","data":{{"object":{{"lines":[{lines}]}}}},"type":"invoice.paid"}}"#
    )
    .into_bytes()
}

fn mac(signed: &[&[u8]]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    for part in signed {
        mac.update(part);
    }
    mac.finalize().into_bytes().to_vec()
}

/// Each preset with the head of a request for the body.
fn presets(body: &[u8]) -> Vec<(&'static str, Provider, Parts)> {
    let secret = || Secret::new(SECRET).unwrap();
    let head = |headers: &[(&str, String)]| {
        let mut request = Request::builder();
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        request.body(()).unwrap().into_parts().0
    };
    let stripe = hex::encode(mac(&[b"1750000000.", body]));
    let github = hex::encode(mac(&[body]));
    vec![
        (
            "stripe",
            Provider::stripe(secret()).tolerance(Tolerance::unlimited()),
            head(&[("stripe-signature", format!("t=1750000000,v1={stripe}"))]),
        ),
        (
            "github",
            Provider::github(secret()),
            head(&[
                ("x-hub-signature-256", format!("sha256={github}")),
                ("x-github-delivery", "72d3162e-cc78-11e3-81ab".into()),
                ("x-github-event", "push".into()),
            ]),
        ),
        (
            "shopify",
            Provider::shopify(secret()),
            head(&[
                ("x-shopify-hmac-sha256", BASE64.encode(mac(&[body]))),
                ("x-shopify-webhook-id", "b54557e4-bdd9-4b37-8a5f".into()),
                ("x-shopify-topic", "orders/create".into()),
            ]),
        ),
    ]
}

fn verify(criterion: &mut Criterion) {
    for (name, size) in SIZES {
        let body = event(size);
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Bytes(body.len() as u64));
        group.sample_size(10);
        group.bench_function("bare HMAC", |bencher| {
            bencher.iter(|| mac(&[black_box(&body)]));
        });
        for (preset, provider, head) in presets(&body) {
            group.bench_with_input(
                BenchmarkId::new("verify", preset),
                &body,
                |bencher, body| {
                    bencher.iter(|| {
                        provider
                            .verify(black_box(&head), body, SystemTime::UNIX_EPOCH)
                            .unwrap()
                    });
                },
            );
        }
        group.finish();
    }
}

/// The JSON part alone: a provider whose signature costs next to nothing.
fn identify(criterion: &mut Criterion) {
    let body = event(1_000_000);
    let mut group = criterion.benchmark_group("identify 1 MB");
    group.throughput(Throughput::Bytes(body.len() as u64));
    group.sample_size(20);
    group.bench_function("serde_json::Value, then the id", |bencher| {
        bencher.iter(|| {
            let value: Value = serde_json::from_slice(black_box(&body)).unwrap();
            value["id"].as_str().unwrap().to_owned()
        });
    });
    let path = |path: &str| Source::json(path.parse::<JsonPath>().unwrap());
    let provider = Provider::custom("unsigned")
        .signature(Unsigned, Secret::new(SECRET).unwrap())
        .delivery_id(path("$.id"))
        .event_type(path("$.type"));
    let (head, ()) = Request::new(()).into_parts();
    group.bench_function("$.id and $.type", |bencher| {
        bencher.iter(|| {
            provider
                .verify(&head, black_box(&body), SystemTime::UNIX_EPOCH)
                .unwrap()
        });
    });
    group.finish();
}

/// Accepts everything, to leave the JSON alone on the scales.
#[derive(Debug)]
struct Unsigned;

impl idempotent_webhook::SignatureScheme for Unsigned {
    fn verify(
        &self,
        _: &Parts,
        _: &[u8],
        _: &idempotent_webhook::Secrets,
    ) -> Result<Option<SystemTime>, idempotent_webhook::SignatureError> {
        Ok(None)
    }
}

criterion_group!(benches, verify, identify);
criterion_main!(benches);
