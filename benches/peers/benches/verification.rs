//! Verification by this crate and by others, on equal input: the same body, signed with
//! the same key for each of the three schemes.
//!
//!     cargo bench --manifest-path benches/peers/Cargo.toml
//!
//! `benches/README.md` says how to read it.

#[path = "../../verify/deliveries.rs"]
mod deliveries;

use std::hint::black_box;
use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use http::HeaderName;
use http::request::Parts;
use idempotent_webhook::{HmacSha256, Provider, Secret, Source};

use deliveries::{SECRET, SIGNED_AT, SIZES, event, github, head, mac, stripe};

/// Whether a body is the one that was signed.
type Verify = Box<dyn Fn(&[u8]) -> bool>;

/// Makes a [`Verify`] for a body that it signs just now: some insist on a recent time.
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
    ("standard/this crate", |body| this_crate(standard(body))),
    ("standard/webhook-verify", |body| {
        webhook_verify(
            webhook_verify::Provider::StandardWebhooks,
            &standard_secret(),
            standard(body).1,
        )
    }),
    ("standard/svix", svix),
    ("standard/standardwebhooks", standardwebhooks),
];

fn this_crate((provider, head): (Provider, Parts)) -> Verify {
    Box::new(move |body| provider.verify(&head, body, SystemTime::now()).is_ok())
}

fn webhook_verify(provider: webhook_verify::Provider, secret: &str, head: Parts) -> Verify {
    let secret = webhook_verify::Secret::new(secret);
    // Any age, as for this crate's own Stripe: the time is that of the shared delivery.
    let options = webhook_verify::VerifyOptions::default().with_max_age(None);
    Box::new(move |body| {
        let options = options.clone();
        webhook_verify::verify(provider, &head.headers, body, &secret, options).is_ok()
    })
}

/// It has no function for the signature alone: this parses the event as well.
fn async_stripe_webhook(body: &[u8]) -> Verify {
    let (_, head) = stripe(body);
    let signed_at = i64::try_from(SIGNED_AT).unwrap();
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

/// Standard Webhooks show a key in base64.
fn standard_secret() -> String {
    format!("whsec_{}", BASE64.encode(SECRET))
}

/// [Standard Webhooks](https://www.standardwebhooks.com), described by data.
fn standard(body: &[u8]) -> (Provider, Parts) {
    let [id, time, signature] = ["webhook-id", "webhook-timestamp", "webhook-signature"];
    let scheme = HmacSha256::base64(HeaderName::from_static(signature))
        .prefix("v1,")
        .separator(' ')
        .timestamp_header(HeaderName::from_static(time))
        .id_header(HeaderName::from_static(id))
        .signed("{id}.{timestamp}.{body}")
        .unwrap();
    let provider = Provider::custom("standard")
        .signature(scheme, Secret::new(SECRET).unwrap())
        .delivery_id(Source::header(HeaderName::from_static(id)));

    let msg = "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk";
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let mac = mac(
        SECRET.as_bytes(),
        &[format!("{msg}.{now}.").as_bytes(), body],
    );
    let head = head(&[
        (id, msg.into()),
        (time, now.to_string()),
        (signature, format!("v1,{}", BASE64.encode(mac))),
    ]);
    (provider, head)
}

fn svix(body: &[u8]) -> Verify {
    let webhook = svix::webhooks::Webhook::new(&standard_secret()).unwrap();
    let (_, head) = standard(body);
    Box::new(move |body| webhook.verify(body, &head.headers).is_ok())
}

fn standardwebhooks(body: &[u8]) -> Verify {
    let webhook = standardwebhooks::Webhook::new(&standard_secret()).unwrap();
    let (_, head) = standard(body);
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
