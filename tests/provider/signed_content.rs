//! `Provider::signed_content`: the content that a preset's signature covers.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::Request;
use idempotent_webhook::testing::TestDelivery;
use idempotent_webhook::{Secret, presets};
use sha2::{Digest, Sha256};

const FORM: &str = "b=2&a=1&MessageUUID=m";
const JSON: &str = r#"{"id":"1","event_id":"2"}"#;

/// The signed content of a delivery that is signed at the Unix time 1750000000.
fn content(provider: &str, body: &str) -> Option<String> {
    let secret = Secret::new("bm9ib2R5").unwrap();
    let provider = presets::by_name(provider).unwrap().provider(secret);
    let provider = provider.public_url("https://example.com".parse().unwrap());
    let (head, body) = TestDelivery::new(&provider)
        .uri("/hooks?q=1")
        .body(body)
        .at(SystemTime::UNIX_EPOCH + Duration::from_secs(1_750_000_000))
        .request::<Bytes>()
        .into_parts();
    let content = provider.signed_content(&head, &body).unwrap();
    content.map(|content| String::from_utf8(content).unwrap())
}

#[test]
fn the_content_is_what_the_provider_documents() {
    for (provider, body, expected) in [
        ("github", JSON, JSON),
        ("shopify", JSON, JSON),
        ("stripe", JSON, r#"1750000000.{"id":"1","event_id":"2"}"#),
        ("slack", JSON, r#"v0:1750000000:{"id":"1","event_id":"2"}"#),
        (
            "svix",
            JSON,
            r#"delivery-1.1750000000.{"id":"1","event_id":"2"}"#,
        ),
        (
            "twilio",
            FORM,
            "https://example.com/hooks?q=1MessageUUIDma1b2",
        ),
        (
            "mandrill",
            FORM,
            "https://example.com/hooks?q=1MessageUUIDma1b2",
        ),
        (
            "plivo",
            FORM,
            "https://example.com/hooks?q=1.MessageUUIDma1b2.12345678901234567890",
        ),
    ] {
        assert_eq!(
            content(provider, body).as_deref(),
            Some(expected),
            "{provider}"
        );
    }
    // Bird signs the bytes of a digest.
    let secret = Secret::new("bm9ib2R5").unwrap();
    let bird = presets::messagebird(secret).public_url("https://example.com".parse().unwrap());
    let request = TestDelivery::new(&bird).uri("/hooks?q=1").body(JSON);
    let request = request.at(SystemTime::UNIX_EPOCH + Duration::from_secs(1_750_000_000));
    let (head, body) = request.request::<Bytes>().into_parts();
    let signed = [
        b"1750000000\nhttps://example.com/hooks?q=1\n".as_slice(),
        &Sha256::digest(JSON),
    ];
    assert_eq!(
        bird.signed_content(&head, &body).unwrap(),
        Some(signed.concat())
    );
    // GitLab sends the secret, and signs nothing.
    assert_eq!(content("gitlab", JSON), None);
}

#[test]
fn it_needs_no_signature_that_is_right() {
    let key = Secret::new("03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8");
    let discord = presets::by_name("discord").unwrap().provider(key.unwrap());
    let request = Request::post("/").header("x-signature-timestamp", "1750000000");
    let (head, ()) = request.body(()).unwrap().into_parts();
    let content = discord.signed_content(&head, b"{}").unwrap();
    assert_eq!(content.as_deref(), Some(&b"1750000000{}"[..]));
}
