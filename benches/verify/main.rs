//! The speed of verification and identification without a database, compared with the operations that limit it.
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

mod deliveries;
mod keyed;

use std::hint::black_box;
use std::time::{Duration, SystemTime};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use http::Request;
use idempotent_webhook::provider::signature::{
    SignatureError, SignatureScheme, Signed, SignedRequest,
};
use idempotent_webhook::{JsonPath, Provider, Secret, Secrets, Source};
use serde_json::Value;

use deliveries::{PRESETS, SECRET, SIZES, all, event, mac};

fn verify(criterion: &mut Criterion) {
    for (name, size) in SIZES {
        let body = event(size);
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Bytes(body.len() as u64));
        group.sample_size(10);
        group.bench_function("bare HMAC", |bencher| {
            bencher.iter(|| mac(SECRET.as_bytes(), &[black_box(&body)]));
        });
        for (preset, input) in PRESETS {
            let (provider, head, body) = input(&body);
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

/// Each preset of the registry, with the smallest possible body. This shows what the scheme costs in addition to the
/// hash of the body.
fn verify_small(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("small");
    group.sample_size(10);
    group.warm_up_time(Duration::from_millis(200));
    group.measurement_time(Duration::from_millis(500));
    // Tokens with an expiry are verified at the time when they were made.
    let now = SystemTime::now();
    for (preset, (provider, head, body)) in all() {
        group.bench_function(BenchmarkId::new("verify", preset), |bencher| {
            bencher.iter(|| provider.verify(black_box(&head), &body, now).unwrap());
        });
    }
    group.finish();
}

/// The cost of verifying a signature that was made with a private key, compared with an HMAC over a body of the same
/// size. The signatures are in tokens, or come with a certificate or a chain of certificates.
fn verify_keyed(criterion: &mut Criterion) {
    let body = String::from_utf8(event(3_000)).unwrap();
    let mut group = criterion.benchmark_group("keys, 3 KB");
    group.sample_size(10);
    group.warm_up_time(Duration::from_millis(200));
    group.measurement_time(Duration::from_millis(500));
    for (name, input) in keyed::CASES {
        let (provider, head, body) = input(&body);
        // Tokens with an expiry are verified at the time when they were made.
        let now = SystemTime::now();
        let verify = || provider.verify(black_box(&head), &body, now).unwrap();
        assert!(verify().delivery().is_some(), "{name}");
        group.bench_function(BenchmarkId::new("verify", name), |bencher| {
            bencher.iter(verify);
        });
    }
    group.finish();
}

/// Only the JSON part, with a provider whose signature costs almost nothing.
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

/// Accepts everything, so that only the JSON is measured.
#[derive(Debug)]
struct Unsigned;

impl SignatureScheme for Unsigned {
    fn verify(&self, _: &SignedRequest<'_>, _: &Secrets) -> Result<Signed, SignatureError> {
        Ok(Signed::new())
    }
}

criterion_group!(benches, verify, verify_small, verify_keyed, identify);
criterion_main!(benches);
