//! A feature that is off is named.
#![cfg(test)]

use std::error::Error;
use std::time::SystemTime;

use http::Request;
use idempotent_webhook::{Secret, presets};

#[test]
fn a_preset_that_is_not_there_names_its_feature() {
    for (name, error) in [
        ("twilio", "the preset `twilio` needs the feature `sha1`"),
        ("aws-sns", "the preset `aws-sns` needs the feature `x509`"),
        (
            "ebay",
            "the preset `ebay` needs the features `p256`, `sha1`",
        ),
        ("unheard-of", "there is no preset `unheard-of`"),
    ] {
        assert_eq!(presets::by_name(name).unwrap_err().to_string(), error);
    }
    assert_eq!(presets::by_name("github").unwrap().name(), "github");
}

/// Of YouTube's hub, of Sumsub's older webhooks, and of a key pair of Standard Webhooks.
#[test]
fn a_signature_by_an_algorithm_that_is_off_names_its_feature() {
    let secret = |text: &str| Secret::new(text).unwrap();
    let signature = "0".repeat(40);
    let requests = [
        (
            presets::websub(secret("a secret")),
            "sha1",
            vec![("x-hub-signature", format!("sha1={signature}"))],
        ),
        (
            presets::sumsub(secret("a secret")),
            "sha1",
            vec![
                ("x-payload-digest-alg", "HMAC_SHA1_HEX".into()),
                ("x-payload-digest", signature),
            ],
        ),
        (
            presets::standard_webhooks(secret("whpk_aGVsbG8=")),
            "ed25519",
            vec![
                ("webhook-id", "msg_1".into()),
                ("webhook-timestamp", "1750000000".into()),
                ("webhook-signature", format!("v1a,{}==", "A".repeat(86))),
            ],
        ),
    ];
    for (provider, feature, headers) in requests {
        let mut request = Request::post("/");
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        let error = provider
            .verify(&head, b"{}", SystemTime::now())
            .unwrap_err();
        assert_eq!(
            error.source().unwrap().to_string(),
            format!(
                "the signature can only be verified with this crate's feature `{feature}`, which is off"
            )
        );
    }
}
