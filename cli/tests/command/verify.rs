//! Requests that verify, and the steps at which other requests fail.

use idempotent_webhook::presets;

use crate::capture::{AT, Captured};
use crate::run::webhook;
use crate::vectors::{KINDS, accepted, with_fetched_key};

const PUSH: &str = r#"{"action":"opened","number":1}"#;

#[test]
fn what_is_right_verifies() {
    for provider in KINDS {
        let run = accepted(provider).unwrap().verify();
        run.ends(0).says("signature  ok").says("\nIt verifies.\n");
    }
}

#[test]
fn a_case_of_each_preset_verifies() {
    for preset in presets::ALL {
        let Some(captured) = accepted(preset.name()) else {
            continue;
        };
        let run = captured.verify();
        match run.code {
            // A case without a time may set its own tolerance. The command uses the preset's
            // tolerance, so only the step for the time may fail.
            1 if captured.at.is_none() => {
                run.says("\nThe signature is right.");
            }
            _ => {
                run.ends(0);
            }
        }
    }
}

#[test]
fn keys_that_are_fetched_are_no_verdict() {
    for provider in ["google-pubsub", "plaid", "aws-sns"] {
        let run = with_fetched_key(provider).unwrap().verify();
        run.is_error(&format!(
            "the keys of {provider} must be fetched, which this command does not do"
        ));
    }
}

#[test]
fn another_secret_gets_no_wrong_advice() {
    for provider in KINDS {
        let captured = accepted(provider).unwrap();
        for other in ["", "2"] {
            let secret = match provider {
                // A key in the right format.
                "discord" => format!("{}{other:0>2}", &captured.secret[2..]).replace("00", "01"),
                "standard-webhooks" => format!("whsec_{}", "AQID".repeat(8)),
                "livekit" => format!("APIkey:another-secret{other}"),
                _ => format!("another-secret-of-{provider}{other}"),
            };
            let run = captured.with_secret(&secret).verify();
            run.ends(1)
                .says("None of the usual mistakes makes it right. It is another secret");
            assert!(!run.out.contains("It verifies if"), "{}", run.out);
        }
    }
}

#[test]
fn the_method_and_the_id_are_steps_of_their_own() {
    let mut got = Captured::of("github", "a github secret", PUSH);
    got.method = "GET".to_owned();
    got.verify().ends(1).says("method     FAILS");

    let mut nameless = Captured::of("github", "a github secret", PUSH);
    nameless.headers.remove("x-github-delivery");
    nameless
        .verify()
        .ends(1)
        .says("signature  ok")
        .says("id         FAILS")
        .says("The delivery id is: header x-github-delivery.");
}

#[test]
fn a_clock_that_is_off_is_told_by_how_much() {
    for provider in ["stripe", "standard-webhooks"] {
        let mut late = accepted(provider).unwrap();
        assert_eq!(late.at, Some(AT));
        late.at = Some(AT + 3600);
        late.verify()
            .ends(1)
            .says("signature  ok\ntime       FAILS: signed 3600 s ago, 300 s are allowed")
            .says("It verifies at 2025-06-15T15:06:40Z (--at 2025-06-15T15:06:40Z), which is 1h away.");
        late.at = Some(AT + 300);
        late.verify()
            .ends(0)
            .says("time       ok, signed at 2025-06-15T15:06:40Z");
    }
    let captured = accepted("stripe").unwrap();
    for at in ["2025-06-15T15:06:40Z", "2025-06-15 15:11:40"] {
        let arguments = ["verify", "stripe", "-", "--at", at];
        webhook(&captured.secret, &arguments, &captured.text()).ends(0);
    }
    // Without --at, the time is now.
    let run = webhook(
        &captured.secret,
        &["verify", "stripe", "-"],
        &captured.text(),
    );
    run.ends(1).says("time       FAILS");
}

#[test]
fn what_is_signed_is_shown_with_long_bodies_cut_and_without_the_secret() {
    let secret = "a-secret-that-is-in-the-body";
    let body = format!(
        r#"{{"id":"evt_1","a":"{}","b":"{secret}"}}"#,
        "x".repeat(2000)
    );
    let captured = Captured::of("stripe", secret, &body).with_body(format!("{body}\t\n"));
    let run = captured.verify();
    run.ends(1)
        .says(r#"  1750000000.{"id":"evt_1","a":"xxx"#)
        .says("characters ...]")
        .says(r#""b":"<secret>"}\t\n"#);
    let forged = captured.with_secret("9f8e7d6c5b4a3928");
    forged.verify().ends(1).says(r#""b":"a-secret-"#);
}

#[test]
fn lines_of_a_capture_may_end_with_a_line_feed_alone() {
    let captured = Captured::of("github", "a github secret", PUSH);
    let text = String::from_utf8(captured.text()).unwrap();
    let text = text.replace("\r\n", "\n");
    let run = webhook(
        &captured.secret,
        &["verify", "github", "-"],
        text.as_bytes(),
    );
    run.ends(0);

    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("capture.http");
    std::fs::write(&file, captured.text()).unwrap();
    let arguments = ["verify", "github", file.to_str().unwrap()];
    webhook(&captured.secret, &arguments, b"").ends(0);
}

#[test]
fn the_announced_length_says_where_the_body_ends() {
    let captured = Captured::of("github", "a github secret", PUSH);
    let length = PUSH.len().to_string();
    let announced = captured.with_header("content-length", &length);
    announced.verify().ends(0);
    announced
        .with_body(format!("{PUSH}\n"))
        .verify()
        .ends(0)
        .says("white space after the 30 bytes of Content-Length is left out");
    announced
        .with_body(PUSH.replace(',', ", "))
        .verify()
        .ends(1)
        .says("the body has 31 bytes, and Content-Length says 30");
}

#[test]
fn a_handshake_is_told() {
    let body = r#"{"type":"url_verification","challenge":"c"}"#;
    let captured = Captured::of("slack", "a slack secret", body);
    captured.verify().ends(0).says("It is a handshake");
}
