//! Canaries: signed requests that the layer verifies and claims without calling the handler. Tests
//! who can make one, and which requests are not canaries.

use std::time::SystemTime;

use bytes::Bytes;
use http::Request;
use idempotent_webhook::presets::{self, Preset};
use idempotent_webhook::provider::{Verified, VerifyError};
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{Provider, Secret};

use crate::support::{a_secret_of, verify, with_test_keys};

/// The whole body of a canary.
const MARK: &[u8] = b"\"idempotent-webhook-canary\"";

fn provider(preset: &Preset) -> Provider {
    with_test_keys(preset.provider(a_secret_of(preset)))
        .public_url("https://example.com".parse().unwrap())
}

fn with_body(request: &Request<Bytes>, body: &'static [u8]) -> Request<Bytes> {
    request.clone().map(|_| Bytes::from_static(body))
}

#[test]
fn deploy_3_a_canary_of_each_preset_is_under_the_signature_or_not_possible() {
    let mut not_possible = Vec::new();
    for preset in presets::ALL {
        let name = preset.name();
        let provider = provider(preset);
        let canary = match TestDelivery::canary(&provider) {
            Ok(canary) => canary,
            Err(error) => {
                let text = error.to_string();
                assert!(
                    text.starts_with(&format!("a canary of {name} is not possible: ")),
                    "{text}"
                );
                if provider.signs_body() {
                    not_possible.push(name);
                }
                // Signing the body of a canary by hand does not make a canary either.
                if let Ok(request) = TestDelivery::new(&provider).body(MARK).try_request() {
                    let verified = verify(&provider, request);
                    assert!(!matches!(verified, Ok(Verified::Canary)), "{name}");
                }
                continue;
            }
        };
        let request: Request<Bytes> = canary.request();
        assert_eq!(request.body(), MARK, "{name}");
        // A replay of a canary is a canary, too.
        for _ in 0..2 {
            let verified = verify(&provider, request.clone());
            assert!(
                matches!(verified, Ok(Verified::Canary)),
                "{name}: {verified:?}"
            );
        }
        let refused =
            |request| matches!(verify(&provider, request), Err(VerifyError::Signature(_)));
        assert!(refused(canary.unsigned().request()), "{name}");
        // The signature of a canary fits no other body, and no other signature fits a canary.
        assert!(refused(with_body(&request, b"{}")), "{name}");
        let delivery = TestDelivery::new(&provider).at(SystemTime::now());
        assert!(refused(with_body(&delivery.request(), MARK)), "{name}");
        let expires = provider.description().tolerance.past().is_some();
        if provider.signs_time() && expires {
            assert!(refused(canary.expired().request()), "{name}");
        }
    }
    // These providers sign only a part of the body, or require a certain form of the body, so they
    // cannot sign the body of a canary.
    assert_eq!(not_possible, ["braintree", "linear", "maxio", "wix", "x"]);
}

#[test]
fn deploy_3_a_canary_is_not_possible_where_only_the_provider_has_the_key() {
    let public_key = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
    let preset = presets::by_name("discord").unwrap();
    let discord = preset.provider(Secret::new(public_key).unwrap());
    let error = TestDelivery::canary(&discord).unwrap_err().to_string();
    let expected = "a canary of discord is not possible: the request cannot be signed: there is no private key";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn deploy_3_nobody_makes_a_canary_with_another_secret() {
    let github = presets::github(Secret::new("the secret").unwrap());
    let stripe = presets::stripe(Secret::new("the secret").unwrap());
    for (provider, others) in [
        (&github, presets::github(Secret::new("another").unwrap())),
        (&stripe, presets::stripe(Secret::new("another").unwrap())),
    ] {
        let forged = TestDelivery::canary(&others).unwrap();
        let verified = verify(provider, forged.request());
        assert!(
            matches!(verified, Err(VerifyError::Signature(_))),
            "{verified:?}"
        );
    }
}

/// A delivery is not a canary, even if it has the headers of a canary, or its body mentions
/// canaries.
#[test]
fn deploy_3_a_delivery_is_no_canary() {
    for preset in presets::ALL {
        let (name, provider) = (preset.name(), provider(preset));
        let Ok(canary) = TestDelivery::canary(&provider) else {
            continue;
        };
        let canary: Request<Bytes> = canary.request();
        let mut delivery = TestDelivery::new(&provider).at(SystemTime::now());
        for (header, value) in canary.headers() {
            delivery = delivery.header(header.clone(), value.to_str().unwrap());
        }
        let verified = verify(&provider, delivery.request());
        assert!(
            matches!(verified, Ok(Verified::Delivery(_))),
            "{name}: {verified:?}"
        );
    }
    let github = presets::github(Secret::new("the secret").unwrap());
    for body in [
        &b" \"idempotent-webhook-canary\""[..],
        b"\"idempotent-webhook-canary\"\n",
        b"\"idempotent-webhook-canary",
        b"\"Idempotent-Webhook-Canary\"",
        b"[\"idempotent-webhook-canary\"]",
        b"{\"idempotent-webhook-canary\":true}",
        b"idempotent-webhook-canary",
        b"",
    ] {
        let delivery = TestDelivery::new(&github).body(body);
        let verified = verify(&github, delivery.request());
        assert!(
            matches!(verified, Ok(Verified::Delivery(_))),
            "{body:?}: {verified:?}"
        );
    }
}
