//! Presets whose keys are fetched: tests from which address a key is fetched, and that a test can sign with a private
//! key.

use std::time::SystemTime;

use bytes::Bytes;
use http::Request;
use idempotent_webhook::presets;
use idempotent_webhook::provider::keys::KeySource;
use idempotent_webhook::provider::signature::SignatureError;
use idempotent_webhook::provider::{Verified, VerifyError};
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{Provider, Secret};

use crate::support::{cases_of, verify};

/// The private key among the cases of a preset, and the public keys that belong to it.
fn keys(preset: &str) -> [KeySource; 2] {
    let cases = cases_of(presets::by_name(preset).unwrap());
    [["private-key", "region-private-key"], ["good", "region-us"]].map(|names| {
        let mut named = cases.iter().filter(|case| names.contains(&&*case.name));
        KeySource::given(&named.find_map(|case| case.keys.clone()).unwrap()).unwrap()
    })
}

fn provider(preset: &str, secret: &str) -> Provider {
    let preset = presets::by_name(preset).unwrap();
    preset.provider(Secret::new(secret).unwrap())
}

/// Each preset with one of its secrets, and the start of the address that is asked for its keys.
const FETCHED: [(&str, &str, &str); 8] = [
    (
        "ebay",
        "a-token",
        "https://api.ebay.com/commerce/notification/v1/public_key/",
    ),
    (
        "ebay",
        "sandbox:a-token",
        "https://api.sandbox.ebay.com/commerce/notification/v1/public_key/",
    ),
    ("fal", "a-user", "https://rest.fal.ai/.well-known/jwks.json"),
    (
        "fireblocks",
        "us",
        "https://keys.fireblocks.io/.well-known/jwks.json",
    ),
    (
        "fireblocks",
        "eu",
        "https://eu-keys.fireblocks.io/.well-known/jwks.json",
    ),
    (
        "fireblocks",
        "eu2",
        "https://eu2-keys.fireblocks.io/.well-known/jwks.json",
    ),
    (
        "fireblocks",
        "sandbox",
        "https://sandbox-keys.fireblocks.io/.well-known/jwks.json",
    ),
    (
        "github-secret-scanning",
        "unused",
        "https://api.github.com/meta/public_keys/secret_scanning",
    ),
];

#[test]
fn a_test_signs_with_a_private_key_in_place_of_what_is_fetched() {
    for (preset, secret, _) in FETCHED {
        let [private, public] = keys(preset);
        let signing = provider(preset, secret).keys(private);
        signing.check_secrets().expect(preset);
        let delivery = TestDelivery::new(&signing);
        let verified = verify(&signing, delivery.request());
        assert!(
            matches!(verified, Ok(Verified::Delivery(_))),
            "{preset}: {verified:?}"
        );
        for refused in [delivery.tampered(), delivery.unsigned()] {
            let verified = verify(&signing, refused.request());
            assert!(
                matches!(verified, Err(VerifyError::Signature(_))),
                "{preset}"
            );
        }
        let verifying = provider(preset, secret).keys(public);
        let unable = TestDelivery::new(&verifying).try_request::<Bytes>();
        assert!(unable.is_err(), "{preset}");
    }
}

#[test]
fn keys_are_asked_of_the_provider_alone() {
    for (preset, secret, address) in FETCHED {
        let [private, _] = keys(preset);
        let without_keys = provider(preset, secret);
        assert!(without_keys.check_secrets().is_err(), "{preset}");
        let delivery = TestDelivery::new(&without_keys.clone().keys(private));
        match verify(&without_keys, delivery.request()) {
            Err(VerifyError::Signature(SignatureError::KeyNotFetched(needed))) => {
                let asked = needed.request().url();
                let id = asked.strip_prefix(address).expect(preset);
                let is_plain = |c: char| c.is_ascii_hexdigit() || c == '-';
                assert!(id.chars().all(is_plain), "{asked}");
            }
            other => panic!("{preset}: {other:?}"),
        }
    }
}

/// fal signs for all its customers with the same key, so the signature alone does not show for whom a request is.
#[test]
fn a_request_of_fal_to_another_customer_is_refused() {
    let [private, _] = keys("fal");
    let of = |user: &str| provider("fal", user).keys(private.clone());
    let request = || TestDelivery::new(&of("another")).request();
    assert!(verify(&of("another"), request()).is_ok());
    assert!(matches!(
        verify(&of("ours"), request()),
        Err(VerifyError::Signature(SignatureError::NotForUs(_)))
    ));
}

/// The id of a message is unique only within its topic.
#[test]
fn one_message_id_of_two_subscriptions_of_pub_sub_is_two_deliveries() {
    let private = KeySource::given(include_str!("../keys/rsa.pem")).unwrap();
    let secret = "push@p.iam.gserviceaccount.com https://example.com/";
    let pubsub = provider("google-pubsub", secret).keys(private);
    let id = |subscription: &str, attempt: u32| {
        let body = format!(
            r#"{{"message":{{"messageId":"1"}},"subscription":"{subscription}","deliveryAttempt":{attempt}}}"#
        );
        let verified = verify(&pubsub, TestDelivery::new(&pubsub).body(body).request());
        verified.unwrap().delivery().unwrap().id().to_string()
    };
    assert_ne!(
        id("projects/p/subscriptions/a", 1),
        id("projects/p/subscriptions/b", 1)
    );
    assert_eq!(
        id("projects/p/subscriptions/a", 1),
        id("projects/p/subscriptions/a", 2)
    );
}

/// Fireblocks fetches keys only if the secret is a region. A secret that is a key in PEM verifies the older signature,
/// and nothing is fetched.
#[test]
fn fireblocks_needs_keys_for_a_region_alone() {
    let [private, _] = keys("fireblocks");
    let region = provider("fireblocks", "eu").keys(private);
    assert!(region.check_secrets().is_ok());
    assert!(provider("fireblocks", "asia").check_secrets().is_err());
    let name = http::HeaderName::from_static("fireblocks-signature");
    let (head, ()) = Request::post("/")
        .header(name, "AAAA")
        .body(())
        .unwrap()
        .into_parts();
    assert!(matches!(
        region.verify(&head, b"{}", SystemTime::now()),
        Err(VerifyError::Signature(SignatureError::MissingHeader(_)))
    ));
}
