//! Verification by this crate and by other crates, on the same input: the same body, signed with
//! the same key for each of the three schemes.
//!
//!     cargo bench -p peers
//!
//! `benches/README.md` says how to read it.

#[path = "../../verify/deliveries.rs"]
mod deliveries;

use std::hint::black_box;
use std::time::SystemTime;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use http::request::Parts;

use deliveries::{
    BASE64_SECRET, Input, SECRET, SIZES, event, github, mac, standard_webhooks, stripe,
};

/// Returns whether a body is the one that was signed.
type Verify = Box<dyn Fn(&[u8]) -> bool>;

/// Makes a [`Verify`] for a body. The body is signed just now, because some crates insist on a
/// recent time.
type Contender = (&'static str, fn(&[u8]) -> Verify);

const CONTENDERS: [Contender; 9] = [
    ("github/this crate", |body| this_crate(github(body))),
    ("github/webhook-verify", |body| {
        webhook_verify(webhook_verify::Provider::GitHub, SECRET, github(body).1)
    }),
    ("stripe/this crate", |body| this_crate(stripe(body))),
    ("stripe/webhook-verify", |body| {
        webhook_verify(webhook_verify::Provider::Stripe, SECRET, stripe(body).1)
    }),
    ("stripe/async-stripe-webhook", async_stripe_webhook),
    ("standard/this crate", |body| {
        this_crate(standard_webhooks(body))
    }),
    ("standard/webhook-verify", |body| {
        webhook_verify(
            webhook_verify::Provider::StandardWebhooks,
            BASE64_SECRET,
            standard_webhooks(body).1,
        )
    }),
    ("standard/svix", svix),
    ("standard/standardwebhooks", standardwebhooks),
];

fn this_crate((provider, head, _): Input) -> Verify {
    Box::new(move |body| provider.verify(&head, body, SystemTime::now()).is_ok())
}

fn webhook_verify(provider: webhook_verify::Provider, secret: &str, head: Parts) -> Verify {
    let secret = webhook_verify::Secret::new(secret);
    // Accepts any age, as this crate does in this benchmark.
    let options = webhook_verify::VerifyOptions::default().with_max_age(None);
    Box::new(move |body| {
        let options = options.clone();
        webhook_verify::verify(provider, &head.headers, body, &secret, options).is_ok()
    })
}

/// async-stripe-webhook has no function that checks only the signature, so this also parses the
/// event.
fn async_stripe_webhook(body: &[u8]) -> Verify {
    let (_, head, _) = stripe(body);
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let signed_at = i64::try_from(now).unwrap();
    Box::new(move |body| {
        let signature = head.headers["stripe-signature"].to_str().unwrap();
        std::str::from_utf8(body).is_ok_and(|body| {
            stripe_webhook::Webhook::construct_event_with_timestamp(
                body, signature, SECRET, signed_at,
            )
            .is_ok()
        })
    })
}

fn svix(body: &[u8]) -> Verify {
    let webhook = svix::webhooks::Webhook::new(BASE64_SECRET).unwrap();
    let (_, head, _) = standard_webhooks(body);
    Box::new(move |body| webhook.verify(body, &head.headers).is_ok())
}

fn standardwebhooks(body: &[u8]) -> Verify {
    let webhook = standardwebhooks::Webhook::new(BASE64_SECRET).unwrap();
    let (_, head, _) = standard_webhooks(body);
    Box::new(move |body| webhook.verify(body, &head.headers).is_ok())
}

fn verification(criterion: &mut Criterion) {
    for (name, size) in SIZES {
        let body = event(size);
        let mut changed = body.clone();
        changed[size / 2] ^= 1;

        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Bytes(body.len() as u64));
        group.sample_size(10);
        group.bench_function("bare HMAC", |bencher| {
            bencher.iter(|| mac(SECRET.as_bytes(), &[black_box(&body)]));
        });
        for (contender, verifier) in CONTENDERS {
            let verify = verifier(&body);
            assert!(verify(&body), "{contender} refuses what was signed");
            assert!(!verify(&changed), "{contender} accepts a changed body");
            group.bench_function(BenchmarkId::from_parameter(contender), |bencher| {
                bencher.iter(|| assert!(verify(black_box(&body))));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, verification);
criterion_main!(benches);
