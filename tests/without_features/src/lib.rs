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

/// As YouTube's hub signs.
#[test]
fn a_signature_by_an_algorithm_that_is_off_names_its_feature() {
    let websub = presets::websub(Secret::new("a secret").unwrap());
    let signature = format!("sha1={}", "0".repeat(40));
    let request = Request::post("/").header("x-hub-signature", signature);
    let (head, ()) = request.body(()).unwrap().into_parts();
    let error = websub
        .verify(&head, b"<feed/>", SystemTime::now())
        .unwrap_err();
    assert_eq!(
        error.source().unwrap().to_string(),
        "the signature can only be verified with this crate's feature `sha1`, which is off"
    );
}
