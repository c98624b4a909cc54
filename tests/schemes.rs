//! Schemes by data whose signature, or what it covers, is in the body.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails may panic"
)]

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderName, Request};
use idempotent_webhook::provider::VerifyError;
use idempotent_webhook::signature::{Encoding, Hash, Hmac, SignatureError, SignedContent};
use idempotent_webhook::{Provider, Secret, Source, testing};

const SIGNATURE: HeaderName = HeaderName::from_static("x-signature");

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_750_000_000)
}

fn secret() -> Secret {
    Secret::new("key").unwrap()
}

fn provider(scheme: Hmac) -> Provider {
    Provider::custom("acme")
        .signature(scheme, secret())
        .delivery_id(Source::body_digest())
        .public_url("https://example.com".parse().unwrap())
}

fn verify(provider: &Provider, body: &str) -> Result<(), SignatureError> {
    let (head, ()) = Request::post("/").body(()).unwrap().into_parts();
    match provider.verify(&head, body.as_bytes(), now()) {
        Ok(_) => Ok(()),
        Err(VerifyError::Signature(error)) => Err(error),
        Err(error) => panic!("{error:?}"),
    }
}

fn sign(provider: &Provider, body: &str) -> String {
    let request = Request::post("/")
        .body(Bytes::from(body.to_owned()))
        .unwrap();
    let signed = testing::sign(provider, &secret(), request, now()).unwrap();
    String::from_utf8(signed.into_body().to_vec()).unwrap()
}

fn in_json() -> Provider {
    let path = |path: &str| path.parse().unwrap();
    let content = SignedContent::new()
        .json_value(path("$.signature.time"))
        .json_value(path("$.signature.token"));
    provider(Hmac::hex_in_json(path("$.signature.mac")).signed_without_body(content))
}

#[test]
fn a_signature_can_be_in_json_beside_what_it_covers() {
    // printf 1750000000abc | openssl dgst -sha256 -hmac key
    let mac = "e14d2e76b2b7a9393dd30118cac7499cfa1224419bca831e69c810fbf31e5b06";
    let body = |time: &str, mac: &str| {
        format!(r#"{{"event":1,"signature":{{"mac":"{mac}","time":"{time}","token":"abc"}}}}"#)
    };
    assert_eq!(verify(&in_json(), &body("1750000000", mac)), Ok(()));
    assert!(!in_json().signs_body());
    assert!(!in_json().signs_delivery_id());
    let refused = |body: &str| verify(&in_json(), body).unwrap_err();
    assert_eq!(refused(&body("1750000001", mac)), SignatureError::NoMatch);
    assert_eq!(
        refused(&body("1750000000", "00")),
        SignatureError::MalformedBody
    );
    for malformed in ["", "{}", "[]", r#"{"signature":{"mac":1}}"#] {
        assert_eq!(refused(malformed), SignatureError::MalformedBody);
    }
    let without_token = format!(r#"{{"signature":{{"mac":"{mac}","time":"1750000000"}}}}"#);
    assert_eq!(refused(&without_token), SignatureError::MalformedBody);
    assert_eq!(
        sign(&in_json(), &body("1750000000", "")),
        body("1750000000", mac)
    );
}

#[test]
fn a_signature_can_be_in_a_form_beside_what_it_covers() {
    let provider = provider(
        Hmac::hex_in_form("mac")
            .hash(Hash::Sha1)
            .signed_without_body(SignedContent::new().form_value("payload")),
    );
    // printf 'a b+c' | openssl dgst -sha1 -hmac key
    let mac = "54ea4a7f21ce13c4794ab320904b7263f8ae3bae";
    let form = format!("payload=a+b%2Bc&mac={mac}");
    assert_eq!(verify(&provider, &form), Ok(()));
    assert_eq!(sign(&provider, "mac=x&payload=a+b%2Bc"), form);
    let refused = |body: &str| verify(&provider, body).unwrap_err();
    let other = format!("payload=a+b%2Bd&mac={mac}");
    assert_eq!(refused(&other), SignatureError::NoMatch);
    for malformed in ["", "payload=a", "mac=x&payload=a", &format!("mac={mac}")] {
        assert_eq!(refused(malformed), SignatureError::MalformedBody);
    }
}

#[test]
fn the_sorted_fields_of_a_form_can_be_covered() {
    let scheme = Hmac::base64(SIGNATURE)
        .hash(Hash::Sha1)
        .signed_without_body(SignedContent::new().url().sorted_form());
    let provider = provider(scheme);
    let request = |body: &str| {
        let request = Request::post("/hook?a=b").body(Bytes::from(body.to_owned()));
        testing::sign(&provider, &secret(), request.unwrap(), now()).unwrap()
    };
    let signed = request("b=2+2&a=1&b=1");
    // printf 'https://example.com/hook?a=ba1b1b2 2' | openssl dgst -sha1 -hmac key -binary | base64
    assert_eq!(signed.headers()[SIGNATURE], "x+JnxurZbxFr0p5aN3Zq6RY7+gQ=");
    // The order on the wire does not count.
    assert_eq!(
        request("a=1&b=1&b=2%202").headers()[SIGNATURE],
        signed.headers()[SIGNATURE]
    );
    let (head, body) = signed.into_parts();
    assert!(provider.verify(&head, &body, now()).is_ok());
    assert!(provider.verify(&head, b"b=2+2&a=2&b=1", now()).is_err());
}

#[test]
fn an_encoding_can_be_set_for_a_signature_in_the_body() {
    let path = "$.mac".parse().unwrap();
    let scheme = Hmac::hex_in_json(path)
        .encoding(Encoding::Base64Url)
        .signed_without_body(SignedContent::new().json_value("$.a".parse().unwrap()));
    let provider = provider(scheme);
    let signed = sign(&provider, r#"{"a":1}"#);
    assert_eq!(verify(&provider, &signed), Ok(()));
    assert_eq!(
        verify(&provider, &signed.replace("\"a\":1", "\"a\":2")),
        Err(SignatureError::NoMatch)
    );
}
