//! For every preset, the test kit makes a delivery that the preset accepts, so that an application
//! can test its webhooks regardless of its provider.

use std::time::SystemTime;

use bytes::Bytes;
use http::Request;
use http::header::{CONTENT_TYPE, HeaderName};
use idempotent_webhook::presets;
use idempotent_webhook::provider::{Verified, VerifyError};
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{Secret, Source};

use crate::support::{a_secret_of, verify, with_test_keys};

#[test]
fn a_delivery_of_each_preset_is_to_be_accepted() {
    for preset in presets::ALL {
        let name = preset.name();
        let provider = with_test_keys(preset.provider(a_secret_of(preset)))
            .public_url("https://example.com".parse().unwrap());
        provider.check_secrets().expect(name);
        let delivery = TestDelivery::new(&provider)
            .uri("/webhooks?a=b")
            .at(SystemTime::now());
        let id = |request| match verify(&provider, request) {
            Ok(Verified::Delivery(delivery)) => delivery.id().to_string(),
            other => panic!("{name}: {other:?}"),
        };
        let first = id(delivery.request());
        // A delivery id of the kind `receipt` is new for each received request.
        let is_receipt = provider
            .description()
            .delivery_id
            .to_string()
            .contains("receipt");
        assert!(first == id(delivery.request()) || is_receipt, "{name}");
        let refused = |delivery: &TestDelivery| {
            let verified = verify(&provider, delivery.request());
            matches!(verified, Err(VerifyError::Signature(_)))
        };
        assert!(refused(&delivery.unsigned()), "{name}");
        if provider.signs_body() {
            assert!(refused(&delivery.tampered()), "{name}");
        }
    }
}

/// Mailgun's routes and older webhooks send forms.
#[test]
fn a_form_of_mailgun_is_signed_as_a_form() {
    let provider = presets::mailgun(Secret::new("a secret").unwrap())
        .delivery_id(Source::body_digest())
        .event_type(Source::header(HeaderName::from_static("x-type")));
    let delivery = TestDelivery::new(&provider)
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body("sender=ada%40example.com&subject=a+b&token=old&timestamp=1&signature=2");
    let request: Request<Bytes> = delivery.request();
    let body = std::str::from_utf8(request.body()).unwrap();
    assert!(body.starts_with("sender=ada%40example.com&subject=a%20b&timestamp="));
    assert!(body.contains("&token=old&signature="), "{body}");
    verify(&provider, request).unwrap();
    let broken = TestDelivery::new(&provider).body(r#"{"event-data":"#);
    assert!(broken.try_request::<Bytes>().is_err());
}

/// Presets that sign the URL report that they do, because the base of the URL is the first thing to
/// check if a signature does not match.
#[test]
fn another_public_url_is_refused_by_those_that_sign_the_url() {
    for preset in presets::ALL {
        let behind = |url: &str| {
            let provider = with_test_keys(preset.provider(a_secret_of(preset)));
            provider.public_url(url.parse().unwrap())
        };
        let signed = behind("https://example.com/a");
        let delivery = TestDelivery::new(&signed).at(SystemTime::now());
        let elsewhere = verify(&behind("http://example.com/b"), delivery.request());
        let name = preset.name();
        assert_eq!(elsewhere.is_err(), signed.signs_url(), "{name}");
    }
}
