//! Floods of forged requests that name new key addresses, in simulated time. They must not prevent authentic requests
//! from being verified for long.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::future::join_all;
use http::{HeaderValue, Request, Response};
use idempotent_webhook::provider::keys::KeySource;
use idempotent_webhook::provider::signature::SignatureError;
use idempotent_webhook::provider::{Verified, VerifyError};
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{Provider, presets};
use serde_json::json;
use tokio::time::Instant;

const TOPIC: &str = "arn:aws:sns:us-east-1:123456789012:orders";
const SNS: &str = include_str!("../keys/sns.pem");
const CIRCLE: &str = include_str!("../keys/p256.pem");

/// A key source that answers with keys at the `known` addresses, and with 403 at other addresses, as S3 does. It counts
/// its requests.
fn keys(
    known: impl Fn(&str) -> bool + Send + Sync + 'static,
    text: &'static str,
) -> (KeySource, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let source = KeySource::fetched(move |request: Request<Bytes>| {
        count.fetch_add(1, Ordering::Relaxed);
        let is_known = known(&request.uri().to_string());
        async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let (status, text) = if is_known { (200, text) } else { (403, "") };
            Ok(Response::builder().status(status).body(Bytes::from(text))?)
        }
    });
    (source, asked)
}

async fn verify(provider: &Provider, request: &Request<Bytes>) -> Result<Verified, VerifyError> {
    let (head, ()) = request.clone().map(drop).into_parts();
    let verified = provider.verify_fetching(&head, request.body(), SystemTime::now());
    verified.await
}

/// Whether a request was verified. If not, it must come again, because its key cannot be fetched now.
async fn is_verified(provider: &Provider, request: &Request<Bytes>) -> bool {
    match verify(provider, request).await {
        Ok(Verified::Delivery(_)) => true,
        Err(VerifyError::Signature(SignatureError::KeyNotFetched(_))) => false,
        other => panic!("{other:?}"),
    }
}

fn certificate(name: u32) -> String {
    format!("https://sns.us-east-1.amazonaws.com/SimpleNotificationService-{name:032x}.pem")
}

fn sns(keys: KeySource) -> Provider {
    presets::aws_sns(presets::SnsTopic::new(TOPIC).unwrap()).keys(keys)
}

fn message(address: &str) -> Request<Bytes> {
    let signer = sns(KeySource::given(SNS).unwrap());
    let body = json!({"Message": "{}", "SigningCertURL": address});
    TestDelivery::new(&signer).body(body.to_string()).request()
}

/// An SNS endpoint whose process starts while a flood of forged messages is arriving.
struct Flood {
    /// The time between two forged messages.
    every: Duration,
    /// The number of addresses that the forged messages name over and over. If `None`, each message names a new
    /// address.
    addresses: Option<u32>,
    time: Duration,
    /// The time after which SNS sends an authentic message again.
    authentic: Duration,
}

impl Flood {
    /// Returns for how long authentic messages were refused, and how many requests for keys were made.
    async fn run(self) -> (Duration, usize) {
        let authentic = certificate(0);
        let (keys, asked) = keys(move |address| address == authentic, SNS);
        let provider = sns(keys);
        let template = message(&certificate(1));
        let text = String::from_utf8(template.body().to_vec()).unwrap();
        let forged = |name: u32| {
            let body = text.replace(&certificate(1), &certificate(name));
            template.clone().map(|_| Bytes::from(body))
        };
        let authentic = message(&certificate(0));
        let waited = Mutex::new(Duration::ZERO);
        let flood = async {
            let mut ticks = tokio::time::interval(self.every);
            let (mut all, mut number) = (Vec::new(), 0);
            let started = Instant::now();
            while started.elapsed() < self.time {
                ticks.tick().await;
                let name = 1 + self.addresses.map_or(number, |all| number % all);
                let (provider, request) = (provider.clone(), forged(name));
                all.push(tokio::spawn(async move {
                    assert!(!is_verified(&provider, &request).await);
                }));
                number += 1;
            }
            for one in all {
                one.await.unwrap();
            }
        };
        let traffic = async {
            // Authentic messages start later than the flood. In each second, a forged message arrives before an
            // authentic one.
            const LATER: Duration = Duration::from_millis(31_510);
            tokio::time::sleep(LATER).await;
            let started = Instant::now();
            while started.elapsed() < self.time.saturating_sub(LATER) {
                if !is_verified(&provider, &authentic).await {
                    *waited.lock().unwrap() = started.elapsed() + self.authentic;
                }
                tokio::time::sleep(self.authentic).await;
            }
        };
        tokio::join!(flood, traffic);
        (waited.into_inner().unwrap(), asked.load(Ordering::Relaxed))
    }
}

/// The most requests for keys: 10 at once, 6 more in each minute, and 2 for the authentic address, from which the key
/// is fetched again once an hour.
fn bound(time: Duration) -> usize {
    let minutes = usize::try_from(time.as_secs() / 60).unwrap();
    10 + 6 * (minutes + 1) + 2
}

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn a_forged_address_in_each_second_of_an_hour_refuses_authentic_messages_for_less_than_a_minute()
 {
    let (refused, asked) = Flood {
        every: Duration::from_secs(1),
        addresses: None,
        time: 60 * MINUTE,
        authentic: Duration::from_secs(7),
    }
    .run()
    .await;
    assert!(refused < MINUTE, "{refused:?}");
    assert!(asked <= bound(60 * MINUTE), "{asked}");
}

#[tokio::test(start_paused = true)]
async fn new_forged_addresses_at_300_a_second_refuse_what_comes_again_after_20_seconds_for_two_minutes()
 {
    let (refused, asked) = Flood {
        every: Duration::from_micros(3333),
        addresses: None,
        time: 5 * MINUTE,
        authentic: Duration::from_secs(20),
    }
    .run()
    .await;
    assert!(refused <= 2 * MINUTE, "{refused:?}");
    assert!(asked <= bound(5 * MINUTE), "{asked}");
}

#[tokio::test(start_paused = true)]
async fn forged_addresses_that_are_named_over_and_over_have_their_turn_and_no_more() {
    for (addresses, seconds) in [(20, 150), (40, 350)] {
        let (refused, asked) = Flood {
            every: Duration::from_millis(20),
            addresses: Some(addresses),
            time: 10 * MINUTE,
            authentic: Duration::from_secs(20),
        }
        .run()
        .await;
        let limit = Duration::from_secs(seconds);
        assert!(refused <= limit, "{addresses}: {refused:?}");
        assert!(asked <= bound(10 * MINUTE), "{asked}");
    }
}

#[tokio::test(start_paused = true)]
async fn ten_forged_addresses_in_a_minute_do_not_cost_a_fetch_each() {
    let (refused, asked) = Flood {
        every: Duration::from_secs(6),
        addresses: None,
        time: 60 * MINUTE,
        authentic: Duration::from_secs(20),
    }
    .run()
    .await;
    assert!(refused <= MINUTE, "{refused:?}");
    assert!(asked <= bound(60 * MINUTE), "{asked}");
}

#[tokio::test(start_paused = true)]
async fn forged_requests_are_not_held_while_addresses_that_have_failed_hold_the_places() {
    let (keys, asked) = keys(|_| false, SNS);
    let provider = sns(keys);
    let forged: Vec<_> = (0..50).map(|name| message(&certificate(name))).collect();
    join_all(forged[..10].iter().map(|one| verify(&provider, one))).await;
    let before = Instant::now();
    join_all(forged[10..].iter().map(|one| verify(&provider, one))).await;
    // This is simulated time, which passes only while all tasks wait.
    assert_eq!(before.elapsed(), Duration::ZERO);
    assert_eq!(asked.load(Ordering::Relaxed), 10);
}

#[test]
fn a_long_address_is_not_asked() {
    let (keys, _) = keys(|_| true, SNS);
    let provider = sns(keys);
    let name = "0".repeat(300);
    let address =
        format!("https://sns.us-east-1.amazonaws.com/SimpleNotificationService-{name}.pem");
    let (head, body) = message(&address).into_parts();
    let verified = provider.verify(&head, &body, SystemTime::now());
    assert!(
        matches!(
            verified,
            Err(VerifyError::Signature(SignatureError::NotForUs(_)))
        ),
        "{verified:?}"
    );
}

/// Here, the forged requests name keys that the provider really has.
#[tokio::test(start_paused = true)]
async fn forged_signatures_cost_one_fetch_in_a_minute_however_many_keys_are_known() {
    let (keys, asked) = keys(|_| true, SNS);
    let provider = sns(keys);
    let messages: Vec<_> = (0..10).map(|name| message(&certificate(name))).collect();
    for one in &messages {
        assert!(is_verified(&provider, one).await);
    }
    for fetches in 11..15 {
        tokio::time::advance(MINUTE).await;
        for one in [&messages, &messages].into_iter().flatten() {
            let changed = String::from_utf8(one.body().to_vec()).unwrap();
            let changed = changed.replace(r#""Message":"{}""#, r#""Message":"x""#);
            let forged = one.clone().map(|_| Bytes::from(changed));
            let verified = verify(&provider, &forged).await;
            assert!(
                matches!(
                    verified,
                    Err(VerifyError::Signature(SignatureError::NoMatch))
                ),
                "{verified:?}"
            );
        }
        assert_eq!(asked.load(Ordering::Relaxed), fetches);
    }
}

/// Circle has a separate key for each webhook.
#[tokio::test(start_paused = true)]
async fn notifications_with_a_key_each_are_all_accepted() {
    let address = "https://api.circle.com/v2/notifications/publicKey";
    let secret = || presets::CircleKeys::fetched(address).unwrap();
    let signer = presets::circle(secret()).keys(KeySource::given(CIRCLE).unwrap());
    let signed: Request<Bytes> = TestDelivery::new(&signer).request();
    let (keys, asked) = keys(move |url| url.starts_with(address), CIRCLE);
    let provider = presets::circle(secret()).keys(keys);
    let notification = |key: u32| {
        let mut request = signed.clone();
        let id = format!("00000000-0000-4000-8000-{key:012x}");
        let id = HeaderValue::from_str(&id).unwrap();
        request.headers_mut().insert("x-circle-key-id", id);
        request
    };
    let mut left: Vec<_> = (0..130).map(notification).collect();
    let mut rounds = Vec::new();
    while !left.is_empty() && rounds.len() < 3 {
        let verified = join_all(left.iter().map(|one| is_verified(&provider, one))).await;
        let mut verified = verified.into_iter();
        let before = left.len();
        left.retain(|_| !verified.next().unwrap());
        rounds.push(before - left.len());
        // A request that was answered with 503 comes again.
        tokio::time::sleep(Duration::from_secs(61)).await;
    }
    assert_eq!(rounds, [120, 10]);
    assert_eq!(asked.load(Ordering::Relaxed), 130);
}
