//! For how long a fetched key is used, in simulated time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{Request, Response};
use idempotent_webhook::presets::FireblocksKeys;
use idempotent_webhook::provider::keys::{KeyRequest, KeySource};
use idempotent_webhook::provider::signature::{
    SignatureError, SignatureScheme, Signed, SignedRequest,
};
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{Provider, Secrets, Source, presets};
use serde_json::json;
use tokio::time::Instant;

const CERTIFICATE: &str = "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-0f.pem";
const SNS: &str = include_str!("../keys/sns.pem");
const HOUR: Duration = Duration::from_secs(60 * 60);

fn sns(keys: KeySource) -> Provider {
    let topic = "arn:aws:sns:us-east-1:123456789012:orders";
    presets::aws_sns(presets::SnsTopic::new(topic).unwrap()).keys(keys)
}

/// SNS with a key source that returns the certificate while its status is 200.
struct Sns {
    provider: Provider,
    status: Arc<AtomicU16>,
    message: Request<Bytes>,
}

impl Sns {
    fn new() -> Self {
        let status = Arc::new(AtomicU16::new(200));
        let answered = status.clone();
        let keys = KeySource::fetched(move |_: Request<Bytes>| {
            let status = answered.load(Ordering::Relaxed);
            let text = if status == 200 { SNS } else { "" };
            async move { Ok(Response::builder().status(status).body(Bytes::from(text))?) }
        });
        let signer = sns(KeySource::given(SNS).unwrap());
        let body = json!({"Message": "{}", "SigningCertURL": CERTIFICATE});
        Self {
            provider: sns(keys),
            status,
            message: TestDelivery::new(&signer).body(body.to_string()).request(),
        }
    }

    /// Whether a message that is signed with the key is accepted after the time `later`, if the address of the key then
    /// answers with this status.
    async fn accepts(&self, status: u16, later: Duration) -> bool {
        self.status.store(status, Ordering::Relaxed);
        tokio::time::advance(later).await;
        let (head, ()) = self.message.clone().map(drop).into_parts();
        let (body, now) = (self.message.body(), SystemTime::now());
        let verified = self.provider.verify_fetching(&head, body, now).await;
        verified.is_ok()
    }
}

/// Each region has its own address for keys, and a request does not say from which region it comes. All addresses are
/// therefore asked at once.
#[tokio::test(start_paused = true)]
async fn f1_the_addresses_of_all_secrets_are_asked_at_once() {
    const RSA: &str = include_str!("../keys/rsa.pem");
    let regions = || {
        [
            FireblocksKeys::us(),
            FireblocksKeys::eu(),
            FireblocksKeys::eu2(),
            FireblocksKeys::sandbox(),
        ]
    };
    let signer = presets::fireblocks(FireblocksKeys::us()).keys(KeySource::given(RSA).unwrap());
    let request: Request<Bytes> = TestDelivery::new(&signer).request();
    let (head, ()) = request.clone().map(drop).into_parts();
    for last in 0..4 {
        let mut order = regions();
        order.swap(last, 3);
        let asked = Arc::new(AtomicU16::new(0));
        let count = asked.clone();
        // The fourth address that is asked has the key, and the others hang.
        let keys = KeySource::fetched(move |_: Request<Bytes>| {
            let place = count.fetch_add(1, Ordering::Relaxed);
            async move {
                if place < 3 {
                    std::future::pending::<()>().await;
                }
                Ok(Response::new(Bytes::from(RSA)))
            }
        });
        let provider = presets::fireblocks(Secrets::try_from(order.to_vec()).unwrap()).keys(keys);
        let before = Instant::now();
        let (body, now) = (request.body(), SystemTime::now());
        let verified = provider.verify_fetching(&head, body, now).await;
        assert!(verified.is_ok(), "{verified:?}");
        assert_eq!(asked.load(Ordering::Relaxed), 4);
        assert!(before.elapsed() <= Duration::from_secs(3));
    }
}

/// A scheme that needs keys at several addresses, and names the addresses one after the other.
#[derive(Debug)]
struct OneByOne;

impl SignatureScheme for OneByOne {
    fn verify(&self, request: &SignedRequest<'_>, _: &Secrets) -> Result<Signed, SignatureError> {
        for i in 0..5 {
            request.keys(&KeyRequest::get(format!("https://acme.test/{i}.pem")), None)?;
        }
        Ok(Signed::new())
    }
}

#[tokio::test(start_paused = true)]
async fn f1_one_time_is_enough_for_keys_that_are_asked_one_after_the_other() {
    let keys = KeySource::fetched(|_: Request<Bytes>| async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        Ok(Response::new(Bytes::from(SNS)))
    });
    let provider = Provider::custom("acme")
        .signature(OneByOne, keys)
        .delivery_id(Source::json("$.id".parse().unwrap()))
        .response_deadline(Duration::from_secs(10));
    let before = Instant::now();
    let (head, ()) = Request::post("/").body(()).unwrap().into_parts();
    let verified = provider.verify_fetching(&head, b"{}", SystemTime::now());
    assert!(verified.await.is_err());
    assert_eq!(before.elapsed(), Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn f1_a_key_that_its_provider_has_withdrawn_ends() {
    for gone in [404, 410] {
        let sns = Sns::new();
        assert!(sns.accepts(200, Duration::ZERO).await);
        assert!(sns.accepts(gone, HOUR / 2).await, "it was not asked");
        assert!(!sns.accepts(gone, HOUR).await);
        assert!(sns.accepts(200, HOUR).await);
    }
}

#[tokio::test(start_paused = true)]
async fn f1_a_key_whose_address_fails_is_used_for_a_day() {
    for failure in [403, 429, 500, 503] {
        let sns = Sns::new();
        assert!(sns.accepts(200, Duration::ZERO).await);
        for hour in 1..24 {
            assert!(sns.accepts(failure, HOUR).await, "{failure}, hour {hour}");
        }
        assert!(!sns.accepts(failure, HOUR).await, "{failure}");
        assert!(sns.accepts(200, HOUR).await);
    }
}
