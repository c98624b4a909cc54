//! HMAC schemes that only presets can describe, tested through the presets that use them: required headers, numbered
//! and repeated headers, optional prefixes, lists of lists, white space, times in either unit, keys that are made of
//! texts, and values of the body.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Request};
use idempotent_webhook::provider::VerifyError;
use idempotent_webhook::provider::signature::{Hmac, SignatureError, Tolerance};
use idempotent_webhook::{Provider, Secret, Source, presets, testing};

const BODY: &str = r#"{"id":"event-1"}"#;

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_750_000_000)
}

/// The preset with its delivery id and event type replaced by the digest of the body, so that a test body only has to
/// contain what is signed.
fn preset(name: &str, secret: &str) -> Provider {
    let preset = presets::by_name(name).unwrap();
    preset
        .provider(Secret::new(secret).unwrap())
        .tolerance(Tolerance::unlimited())
        .delivery_id(Source::body_digest())
        .event_type(Source::body_digest())
}

/// The head of a request that the preset's provider has signed.
fn signed(provider: &Provider, secret: &str, body: &str) -> Parts {
    let request = Request::post("/")
        .body(Bytes::from(body.to_owned()))
        .unwrap();
    let secret = Secret::new(secret).unwrap();
    let signed = testing::sign(provider, &secret, request, now()).unwrap();
    signed.into_parts().0
}

fn verify(provider: &Provider, head: &Parts, body: &str) -> Result<(), SignatureError> {
    match provider.verify(head, body.as_bytes(), now()) {
        Ok(_) => Ok(()),
        Err(VerifyError::Signature(error)) => Err(error),
        Err(error) => panic!("{error:?}"),
    }
}

/// The head with these values of a header instead of its own.
fn with(head: &Parts, name: &HeaderName, values: &[&str]) -> Parts {
    let mut head = head.clone();
    head.headers.remove(name);
    for value in values {
        head.headers
            .append(name, HeaderValue::from_str(value).unwrap());
    }
    head
}

#[test]
fn a_required_header_must_be_there_once_with_its_value() {
    let provider = preset("box", "key");
    let head = signed(&provider, "key", BODY);
    assert_eq!(verify(&provider, &head, BODY), Ok(()));
    for name in ["box-signature-version", "box-signature-algorithm"] {
        let name = HeaderName::from_static(name);
        let value = head.headers[&name].to_str().unwrap();
        let refused = |values: &[&str]| verify(&provider, &with(&head, &name, values), BODY);
        let malformed = Err(SignatureError::MalformedHeader(name.clone()));
        assert_eq!(
            refused(&[]),
            Err(SignatureError::MissingHeader(name.clone()))
        );
        assert_eq!(refused(&[&format!("{value}2")]), malformed);
        assert_eq!(refused(&[&value.to_lowercase(), ""]), malformed);
        assert_eq!(refused(&[value, value]), malformed);
    }
}

/// Hookdeck Outpost writes the prefix once, and after a rotation several signatures behind it.
#[test]
fn one_prefix_may_be_before_a_list() {
    let header = HeaderName::from_static("x-outpost-signature");
    let scheme = |time: bool| {
        let scheme = Hmac::hex(header.clone()).first_prefix("v0=").separator(",");
        match time {
            true => scheme.timestamp_field("t="),
            false => scheme,
        }
    };
    let provider = |secret: &str, time: bool| {
        Provider::custom("outpost")
            .signature(scheme(time), Secret::new(secret).unwrap())
            .delivery_id(Source::body_digest())
    };
    for time in [false, true] {
        let (ours, other) = (provider("ours", time), provider("other", time));
        let of = |provider: &Provider, secret: &str| {
            let head = signed(provider, secret, BODY);
            let value = head.headers[&header].to_str().unwrap().to_owned();
            let (before, mac) = value.split_once("v0=").unwrap();
            (head.clone(), before.to_owned(), mac.to_owned())
        };
        let (head, before, mac) = of(&ours, "ours");
        let (_, _, other_mac) = of(&other, "other");
        let malformed = Err(SignatureError::MalformedHeader(header.clone()));
        for (list, expected) in [
            (format!("v0={mac}"), Ok(())),
            (format!("v0={other_mac},{mac}"), Ok(())),
            (format!("v0={mac},{other_mac}"), Ok(())),
            (format!("v0={other_mac},{other_mac},{mac}"), Ok(())),
            (format!("v0={other_mac}"), Err(SignatureError::NoMatch)),
            // Here, the text before the prefix belongs to another scheme.
            (
                format!("{mac},v0={other_mac}"),
                Err(SignatureError::NoMatch),
            ),
            (
                format!("v1={mac},v0={other_mac}"),
                Err(SignatureError::NoMatch),
            ),
            (
                format!("v0={other_mac},v1={mac}"),
                Err(SignatureError::NoMatch),
            ),
            (
                format!("v0={other_mac},v0={mac}"),
                Err(SignatureError::NoMatch),
            ),
            (mac.clone(), malformed.clone()),
            (String::new(), malformed),
        ] {
            let value = format!("{before}{list}");
            let head = with(&head, &header, &[&value]);
            assert_eq!(verify(&ours, &head, BODY), expected, "{value}");
        }
    }
}

#[test]
fn a_numbered_header_has_a_number_and_nothing_else() {
    let provider = preset("docusign", "key");
    let first = HeaderName::from_static("x-docusign-signature-1");
    let head = signed(&provider, "key", BODY);
    let signature = head.headers[&first].to_str().unwrap();
    let without = with(&head, &first, &[]);
    let base = HeaderName::from_static("x-docusign-signature");
    let missing = Err(SignatureError::MissingHeader(base));
    for (name, expected) in [
        ("x-docusign-signature-1", Ok(())),
        ("x-docusign-signature-99", Ok(())),
        ("x-docusign-signature-", missing.clone()),
        ("x-docusign-signature", missing.clone()),
        ("x-docusign-signature-1a", missing.clone()),
        ("x-docusign-signature--1", missing.clone()),
        ("x-docusign-signatures-1", missing),
    ] {
        let head = with(&without, &HeaderName::from_static(name), &[signature]);
        assert_eq!(verify(&provider, &head, BODY), expected, "{name}");
    }
    // One matching signature is enough, in any order.
    let other = signed(&preset("docusign", "other"), "other", BODY);
    let other = other.headers[&first].to_str().unwrap();
    let second = HeaderName::from_static("x-docusign-signature-2");
    for (first_value, second_value) in [(signature, other), (other, signature)] {
        let head = with(&head, &first, &[first_value]);
        let head = with(&head, &second, &[second_value]);
        assert_eq!(verify(&provider, &head, BODY), Ok(()));
    }
    let head = with(&head, &first, &[other]);
    assert_eq!(verify(&provider, &head, BODY), Err(SignatureError::NoMatch));
}

#[test]
fn a_repeatable_header_may_be_repeated_and_an_optional_prefix_left_out() {
    let provider = preset("mollie", "key");
    let name = HeaderName::from_static("x-mollie-signature");
    let head = signed(&provider, "key", BODY);
    let signature = head.headers[&name].to_str().unwrap();
    let bare = signature.strip_prefix("sha256=").unwrap();
    let zeros = "0".repeat(64);
    let verify = |values: &[&str]| verify(&provider, &with(&head, &name, values), BODY);
    for accepted in [
        &[signature][..],
        &[bare],
        &[&zeros, signature],
        &[bare, &zeros],
        &["", "sha256=", bare],
        &[&format!("{zeros}, {signature}")],
    ] {
        assert_eq!(verify(accepted), Ok(()), "{accepted:?}");
    }
    let malformed = Err(SignatureError::MalformedHeader(name.clone()));
    assert_eq!(verify(&[&zeros, &zeros]), Err(SignatureError::NoMatch));
    assert_eq!(
        verify(&[]),
        Err(SignatureError::MissingHeader(name.clone()))
    );
    for prefix in ["sha512=", "SHA256=", "sha256=sha256="] {
        assert_eq!(verify(&[&format!("{prefix}{bare}")]), malformed, "{prefix}");
    }
    // GitHub's signature header must not be repeated.
    let provider = preset("github", "key");
    let name = HeaderName::from_static("x-hub-signature-256");
    let head = signed(&provider, "key", BODY);
    let value = head.headers[&name].to_str().unwrap();
    assert_eq!(
        self::verify(&provider, &with(&head, &name, &[value, value]), BODY),
        Err(SignatureError::MalformedHeader(name))
    );
}

#[test]
fn of_several_lists_the_first_eight_are_looked_at() {
    let provider = preset("persona", "key");
    let name = HeaderName::from_static("persona-signature");
    let head = signed(&provider, "key", BODY);
    let list = head.headers[&name].to_str().unwrap();
    let wrong = format!("t=1750000001,v1={}", "0".repeat(64));
    let at = |position: usize| {
        let mut lists = vec![&*wrong; position];
        lists.push(list);
        verify(&provider, &with(&head, &name, &[&lists.join(" ")]), BODY)
    };
    assert_eq!(at(0), Ok(()));
    assert_eq!(at(7), Ok(()));
    assert_eq!(at(8), Err(SignatureError::NoMatch));
    // Each list has one time.
    let malformed = Err(SignatureError::MalformedHeader(name.clone()));
    for value in [
        format!("v1={} {list}", "0".repeat(64)),
        format!("{wrong},t=1 {list}"),
        format!(" {list}"),
    ] {
        assert_eq!(
            verify(&provider, &with(&head, &name, &[&value]), BODY),
            malformed,
            "{value}"
        );
    }
}

#[test]
fn white_space_around_items_is_skipped_by_those_that_say_so() {
    for (preset_name, name, expected) in [
        ("mercadopago", "x-signature", Ok(())),
        (
            "stripe",
            "stripe-signature",
            Err(SignatureError::MalformedHeader(HeaderName::from_static(
                "stripe-signature",
            ))),
        ),
    ] {
        let provider = preset(preset_name, "key");
        let name = HeaderName::from_static(name);
        let head = signed(&provider, "key", BODY);
        assert_eq!(verify(&provider, &head, BODY), Ok(()), "{preset_name}");
        let value = head.headers[&name].to_str().unwrap();
        let spaced = format!(" {} ", value.replace(',', " ,\t"));
        let head = with(&head, &name, &[&spaced]);
        assert_eq!(verify(&provider, &head, BODY), expected, "{preset_name}");
    }
}

#[test]
fn a_key_can_be_made_of_a_text() {
    for (name, secret, same, other) in [
        ("easypost", "\u{e9}", "e\u{301}", "e"),
        ("woocommerce", "a&amp;b", "a&b", "a&amp;amp;b"),
    ] {
        let provider = preset(name, secret);
        let signed_with = |secret| signed(&preset(name, secret), secret, BODY);
        assert_eq!(verify(&provider, &signed_with(same), BODY), Ok(()));
        assert_eq!(
            verify(&provider, &signed_with(other), BODY),
            Err(SignatureError::NoMatch),
            "{name}"
        );
        assert!(preset(name, secret).check_secrets().is_ok());
    }
}

#[test]
fn values_of_the_body_can_be_covered_without_the_rest() {
    let provider = preset("ecwid", "key");
    assert!(!provider.signs_body());
    let body = r#"{"eventId":"e\u00e9","eventCreated":1750000000,"storeId":1}"#;
    let head = signed(&provider, "key", body);
    // printf '1750000000.eé' | openssl dgst -sha256 -hmac key -binary | base64
    let name = HeaderName::from_static("x-ecwid-webhook-signature");
    assert_eq!(
        head.headers[name],
        "mptqbvUXB2LeY4wIzngnizXj2F05I6VPhU85vjNS4jQ="
    );
    let verify = |body: &str| verify(&provider, &head, body);
    assert_eq!(verify(body), Ok(()));
    assert_eq!(
        verify(r#"{"storeId":2, "eventCreated":1750000000, "eventId":"eé"}"#),
        Ok(())
    );
    assert_eq!(
        verify(&body.replace("1750000000", "1750000001")),
        Err(SignatureError::NoMatch)
    );
    for malformed in [
        "",
        "[]",
        "{}",
        r#"{"eventId":"e"}"#,
        r#"{"eventId":[],"eventCreated":1750000000}"#,
    ] {
        assert_eq!(
            verify(malformed),
            Err(SignatureError::MalformedBody),
            "{malformed}"
        );
    }
}
